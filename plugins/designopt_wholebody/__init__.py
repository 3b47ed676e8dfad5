"""The whole body in natural coordinates: kinematic consistency, inverse and forward dynamics (Nunes 2017)."""
