"""Quantities of a motion that steps follow: extremes and means over time, without samples."""
