"""Dynamics and kinematics of closed loops."""
