"""What one thing costs: the time of one collective and of one kernel."""
