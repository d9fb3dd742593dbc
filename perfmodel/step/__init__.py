"""One training step on one grid: what it computes, what hides behind what, and how long it takes.

It may import the rooms memory, traffic, parallel, logs, costs, models, machines and frameworks, and the base modules.
"""
