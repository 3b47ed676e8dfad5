"""Report parts of whole-body studies."""
