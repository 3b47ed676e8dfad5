"""OpenSim model files: reading them into plain values, with the place of everything that is not understood."""
