"""Meshes of bodies: files as triangles with colours, and fewer triangles where there are too many."""
