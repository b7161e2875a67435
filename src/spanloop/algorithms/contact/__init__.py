"""Contacts: gaps, normals and points of pairs of shapes, and the rows of their Jacobian."""
