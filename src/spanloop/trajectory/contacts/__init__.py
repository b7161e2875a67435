"""Contacts of a motion: gaps, forces, slip, states, and what is not unique, at samples."""
