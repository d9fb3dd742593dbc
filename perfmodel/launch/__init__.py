"""4D-parallel training on torch.distributed: any grid that the model ranks, run for real.

The only package of the project that imports torch (`pip install 'perfmodel[launch]'`). Read in this order:
`training.groups` (which ranks communicate), `training.schedule` (when a weight is gathered and its gradient
scattered), `layers.linear` (the algorithm), then the layers around it; docs/parallelism.md walks through them.

X, Y and Z are the paper's. A normal linear layer splits its inputs over Y and its outputs over X. Z shards every weight
once more and, together with data, splits the batch. AxoNN calls X row (`G_intra_r`), Y column and Z depth.

It may import the rooms search, step, memory, traffic, parallel, logs, costs, models, machines and
frameworks, and the base modules.
"""
