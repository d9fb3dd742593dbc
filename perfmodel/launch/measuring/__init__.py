"""This machine measured: products, memory, the issuing of kernels, collectives of every shape; written as a profile.

`points` says what is measured and how far sizes grow, `worker` measures it on each rank and appends a line for each
result, `lines` reads them back, `profile` makes a profile of them. `benches`, `hardware` and `worker` need torch.

Within the launcher it may import processes, layers and training.
"""
