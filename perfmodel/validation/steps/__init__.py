"""Published steps in sets: how far predictions lie from them, and what likely ranges follow.

Within the validation it may import everything that lies beside it.
"""
