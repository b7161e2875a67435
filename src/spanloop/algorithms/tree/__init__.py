"""Dynamics of trees."""
