"""Parts of the report page."""
