"""One training step on one grid: what it sends, computes and holds, and how long it takes.

It may import the rooms parallel, logs, costs, models and machines, and the base modules.
"""
