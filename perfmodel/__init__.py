"""Which 4D grid trains a model fastest on a machine: an analytical performance model and its search."""

__version__ = "0.1.0"
