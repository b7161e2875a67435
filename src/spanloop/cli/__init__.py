"""The command `spanloop`: words to calls."""
