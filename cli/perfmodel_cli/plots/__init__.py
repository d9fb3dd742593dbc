"""Pictures drawn with matplotlib.

Of the program it may import texts.
"""
