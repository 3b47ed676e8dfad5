"""Sharing on wire models: virtual links find their pose with the tensions."""
