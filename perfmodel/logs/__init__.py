"""Logs of benchmarks of collectives, read into the tables of a machine profile.

It may import the rooms costs, models, machines and frameworks, and the base modules.
"""
