"""Static sharing: activations that balance the moments of every frame at the least cost."""
