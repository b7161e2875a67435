"""One file per algorithm: a page of sweeps with the equations beside them. Imports nothing of the compiler."""
