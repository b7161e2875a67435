"""Flexible bodies from the matrices of a finite-element model: checks, interfaces, reduction, mass, stiffening."""
