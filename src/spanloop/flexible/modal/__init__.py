"""Flexible bodies from modal data: modes with integrals over their mass, as SID files have them."""
