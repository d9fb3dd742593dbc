"""A step of the launch code on pretended ranks, in one process: what it sends, multiplies and holds, counted.

Of the launcher it may import processes, layers and training.
"""
