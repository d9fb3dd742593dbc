"""Training on a grid: groups, schedule of collectives, parameters, gradients, checkpoints.

Of the launcher it may import nothing else.
"""
