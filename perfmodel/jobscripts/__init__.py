"""Job scripts: a grid, an allocation and a framework as the text that a scheduler accepts.

It may import the rooms search, step, memory, traffic, parallel, logs, costs, models and machines, and the base modules.
"""
