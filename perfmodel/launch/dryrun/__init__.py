"""A step of the launch code on simulated ranks, in one process: what it sends, multiplies and holds is counted.

Within the launcher it may import processes, layers and training.
"""
