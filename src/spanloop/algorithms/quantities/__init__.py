"""Quantities that follow from a state: poses, Jacobians, energies, momenta."""
