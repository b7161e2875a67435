"""The impulse solve of contacts: rounds of Newton's method and of sweeps, and problems without a mechanism."""
