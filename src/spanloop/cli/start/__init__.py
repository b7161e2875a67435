"""The start of a motion from arguments of the command line."""
