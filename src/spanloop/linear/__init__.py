"""Linear models of mechanisms: states, inputs and outputs about a position or a motion, modes, gains."""
