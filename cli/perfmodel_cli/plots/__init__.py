"""Pictures drawn with matplotlib.

Within the program it may import terminal and texts.
"""
