"""Rodriguez, Jain & Kreutz: closed topologies of a primary and a secondary system by spatial operators."""
