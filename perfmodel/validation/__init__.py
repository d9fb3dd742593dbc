"""Predictions held against measured and published steps, and calibration on such steps.

It may import the rooms search, step, memory, traffic, parallel, logs, costs, models and machines, and the base modules.
"""
