"""Training on a grid: groups, schedule, parameters, gradients, checkpoints."""
