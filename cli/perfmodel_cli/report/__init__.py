"""The answer, and all that it rests on, as one HTML page.

Of the program it may import question, printing, options, render, plots and signals.
"""
