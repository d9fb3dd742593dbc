"""The processes that run grids, one for each rank: started, watched, timed and ended.

Within the launcher it may import layers and training.
"""
