"""What one device holds at the peak of a training step, term by term.

It may import the rooms parallel, logs, costs, models, machines and frameworks, and the base modules.
"""
