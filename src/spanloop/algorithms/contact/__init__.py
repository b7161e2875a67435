"""Contacts: gaps and their rows, what impulses change, cones of friction."""
