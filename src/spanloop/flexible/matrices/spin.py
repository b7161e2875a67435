"""How fast a body from finite elements may spin without geometric stiffening.

Its stiffness is wrong by 1.19 (Ω/ω₁)² [Southwell]: 1.2 % at a tenth of its first frequency with the root held, 11 % at
three tenths. Beyond, softening by centrifugal forces outweighs what is missing, and motions diverge.
"""

from __future__ import annotations

SPIN = 0.1  # of the first frequency: worth a warning
TOO_FAST = 0.3
LOAD = 0.1  # of the load that buckles the body
