"""Small mathematics on any scalar: rotations, transforms, inertias. Knows no mechanism and no machine."""
