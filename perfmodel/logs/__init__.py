"""Logs of benchmarks of collectives, read into the tables of a profile."""
