"""How a model is spread: the grid, its groups of ranks, its settings, and the rules that it must keep.

It may import the rooms costs, models, machines and frameworks, and the base modules.
"""
