"""What the model runs on: machine profiles, whose every figure carries its source.

It may import no other room, only the base modules.
"""
