"""The answer as one HTML page."""
