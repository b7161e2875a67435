"""Runs that go on with another model: the state carried over by names, the impact of loops that close, one result."""
