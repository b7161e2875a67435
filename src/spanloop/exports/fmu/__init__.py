"""Models as Functional Mock-up Units of FMI 3.0, for Co-Simulation and Model Exchange."""
