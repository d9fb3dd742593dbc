"""Costs of single operations: the time of one collective and of one kernel.

It may import the rooms models, machines and frameworks, and the base modules.
"""
