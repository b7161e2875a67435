"""The command-line interface `spanloop`: one module a command."""
