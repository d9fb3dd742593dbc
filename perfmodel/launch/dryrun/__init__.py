"""A step of the launch code on pretended ranks, in one process: what it sends, multiplies and holds, counted.

Within the launcher it may import processes, layers and training.
"""
