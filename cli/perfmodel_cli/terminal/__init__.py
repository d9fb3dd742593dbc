"""What is shown in a terminal is made of these: cells and lines, declared columns, its width, a bar of progress.

Within the program it may import texts.
"""
