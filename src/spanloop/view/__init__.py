"""Views of models and runs: scene, HTML page, animated SVG, plots, live viewer."""
