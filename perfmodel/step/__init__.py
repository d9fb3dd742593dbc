"""One training step: traffic, FLOPs, memory, overlap, timeline, prediction."""
