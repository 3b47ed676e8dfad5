"""Errors of exports."""


class ExportError(Exception):
    """Nothing can be exported in this format; the message gives the reason."""
