"""Andrews' squeezing mechanism: seven planar bodies, three closed loops, one coordinate."""
