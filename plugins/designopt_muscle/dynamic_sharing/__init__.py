"""Dynamic sharing: activation and compliant tendons over a whole motion, by direct collocation."""
