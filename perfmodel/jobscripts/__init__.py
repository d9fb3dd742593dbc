"""Job scripts: what a machine's scheduler, a framework and a grid need to be told, as text."""
