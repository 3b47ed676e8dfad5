"""Loads from force plates: centre of pressure, contacts, which segment carries which plate."""
