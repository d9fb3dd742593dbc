"""Records as tables for a terminal.

Within the program it may import texts.
"""
