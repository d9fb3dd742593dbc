"""The processes that run grids, one per rank: started, watched, timed and ended.

Within the launcher it may import layers and training.
"""
