"""Job scripts: a grid, an allocation and a framework as the text that a scheduler accepts.

It may import the rooms search, step, memory, traffic, parallel, logs, costs, models, machines and
frameworks, and the base modules.
"""
