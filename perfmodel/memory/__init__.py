"""What one device holds at the peak of a training step, term by term.

It may import the rooms parallel, logs, costs, models and machines, and the base modules.
"""
