"""The commands, one module each: read options, call the library, show the record.

Within the program it may import report, options, printing, render, plots, signals, terminal and texts.
"""
