"""Report parts of a laboratory's trials."""
