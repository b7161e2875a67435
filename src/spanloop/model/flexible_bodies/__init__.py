"""Flexible bodies as parts of a model: how they are found, checked, listed and edited."""

from spanloop.model.flexible_bodies.pieces import FlexibleParts, Piece, flexible_bodies

__all__ = ["FlexibleParts", "Piece", "flexible_bodies"]
