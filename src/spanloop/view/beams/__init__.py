"""Flexible bodies in pictures and plots: the row of segments that is drawn, and the deflection of nodes."""
