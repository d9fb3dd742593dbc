"""The layers of a decoder, each split over a grid.

Of the launcher it may import training.
"""
