"""The processes that run grids, one for each rank: started, watched, timed and ended.

Of the launcher it may import layers and training.
"""
