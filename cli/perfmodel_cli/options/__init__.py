"""What a user may say: each option once, and records of options that read themselves as a question of the library.

Within the program it may import render, plots, signals, terminal and texts.
"""
