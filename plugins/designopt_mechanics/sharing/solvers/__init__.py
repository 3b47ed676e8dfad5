"""How a convex problem per frame is solved: dual Newton for separable costs, interior point for all."""
