"""Predictions held against measured and published steps, and calibration on such steps.

It may import the rooms search, step, memory, traffic, parallel, logs, costs, models, machines and
frameworks, and the base modules.
"""
