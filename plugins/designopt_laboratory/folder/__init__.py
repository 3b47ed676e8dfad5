"""A study from a folder of files."""
