"""Records as tables for a terminal.

Within the program it may import terminal and texts.
"""
