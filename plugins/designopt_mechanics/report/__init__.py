"""Parts of reports: moving scenes of mechanisms, and the figures of each model."""
