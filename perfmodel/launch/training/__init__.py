"""Training on a grid: groups, schedule of collectives, parameters, gradients, checkpoints.

Within the launcher it may import nothing else.
"""
