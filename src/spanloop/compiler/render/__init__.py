"""From a Plan to source text for a target."""
