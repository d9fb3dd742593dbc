"""Records as tables for a terminal."""
