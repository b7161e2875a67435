"""Ready environments: a swing-up, a balance and a walk of mechanisms with closed loops."""
