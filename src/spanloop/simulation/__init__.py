"""Motion in time: integrators, and the free flight that `spanloop demo` shows."""
