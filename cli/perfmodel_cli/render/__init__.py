"""Records as tables for a terminal.

Of the program it may import texts.
"""
