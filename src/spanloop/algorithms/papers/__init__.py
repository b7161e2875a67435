"""The papers' own methods, each a page that reads like its paper."""
