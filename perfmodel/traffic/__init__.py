"""What one training step sends: each collective, its bytes and calls, and the link that it takes.

It may import the rooms parallel, logs, costs, models, machines and frameworks, and the base modules.
"""
