"""A generic OpenSim model fitted to a subject: scale factors, scaled model files, markers placed on the model."""
