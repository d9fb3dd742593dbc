"""How a model is spread: layout, ranks, settings, the rules that a grid must keep, shards."""
