"""Runs to files and back."""
