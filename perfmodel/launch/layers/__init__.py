"""The layers of a decoder, each split over a grid.

Within the launcher it may import training.
"""
