"""The search: which grid is the fastest that fits, how sure that is, and why others were turned down.

It may import the rooms step, parallel, logs, costs, models and machines, and the base modules.
"""
