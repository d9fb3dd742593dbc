"""What trains a model: frameworks as they really run, whose every trait carries its source.

It may import no other room, only the base modules.
"""
