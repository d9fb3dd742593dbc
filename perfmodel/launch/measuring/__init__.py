"""Measure this machine (products, memory, issuing of kernels, collectives of every shape) and write a profile.

`points` says what is measured and how far sizes grow, `worker` measures it on each rank and appends a line for each
result, `lines` reads them back, `profile` turns them into a profile. `benches`, `hardware` and `worker` need torch.

Within the launcher it may import processes, layers and training.
"""
