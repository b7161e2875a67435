"""Motion in time: steps, what acts, loops held closed, conditions, ends. The door is `simulate.py`."""
