"""Measure this machine (products, memory, issuing of kernels, collectives of every shape) and write a profile.

`points` lists what is measured and how far sizes grow. `worker` measures it on each rank and appends a line per result;
`lines` reads these lines, and `profile` makes a profile from them. `benches`, `hardware` and `worker` need torch.

Within the launcher it may import processes, layers and training.
"""
