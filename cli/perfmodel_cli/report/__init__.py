"""The answer, and all that it is based on, as one HTML page.

Within the program it may import question, printing, option_groups, options, render, plots, signals and texts.
"""
