"""Why something cannot be exported."""


class ExportError(Exception):
    """Nothing can be exported in this format; the message says why."""
