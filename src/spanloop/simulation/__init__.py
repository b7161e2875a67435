"""Motion in time: `simulate.py` makes a problem, compiles its time loop, runs it and returns a trajectory."""
