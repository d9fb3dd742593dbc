"""The answer, and all that it is based on, as one HTML page.

Within the program it may import options, printing, render, plots, signals, terminal and texts.
"""
