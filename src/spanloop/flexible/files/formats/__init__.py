"""Readers of finite-element files, one format a file."""
