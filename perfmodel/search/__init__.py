"""The search: enumerate, rank, baselines, uncertainty, scaling, explain, and why nothing fits."""
