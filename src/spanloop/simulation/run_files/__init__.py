"""Runs as TOML files: `read_run("run.toml")` has the arguments of sl.simulate as plain data, events included."""

from spanloop.simulation.run_files.reader import RunFile, events_in, read_run

__all__ = ["RunFile", "events_in", "read_run"]
