"""Floor 2: robustness quantities over items x conditions, every one an Estimate."""
