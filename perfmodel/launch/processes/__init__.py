"""Processes that run grids: launching, environment, results."""
