"""Cable robots: a platform as a body, cables as wires that only pull."""
