"""The search: which grid is the fastest that fits, how certain that is, and why others were rejected.

It may import the rooms step, memory, traffic, parallel, logs, costs, models, machines and
frameworks, and the base modules.
"""
