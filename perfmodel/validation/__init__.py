"""Predictions beside measured and published steps, and calibration."""
