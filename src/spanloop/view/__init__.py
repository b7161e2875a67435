"""Pictures: stick figures, plots, SVG files."""
