"""Models to files."""
