"""A step of the launch code on simulated ranks in one process, counting collectives, FLOPs and memory.

Within the launcher it may import processes, layers and training.
"""
