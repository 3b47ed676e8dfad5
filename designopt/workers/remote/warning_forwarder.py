"""Warnings of designopt on a worker (a long compilation, a missing compiler), passed to the user by the coordinator."""

from __future__ import annotations

import logging
from collections.abc import Callable

#: Maximum number of distinct texts per worker.
MOST = 50


class WarningForwarder(logging.Handler):
    """Passes each warning of designopt's loggers to `tell`, once."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._tell = tell
        self._texts: set[str] = set()
        logging.getLogger("designopt").addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Called by `logging`."""
        text = record.getMessage()
        if text not in self._texts and len(self._texts) < MOST:
            self._texts.add(text)
            self._tell(text)

    def close(self) -> None:
        """Stop passing warnings."""
        logging.getLogger("designopt").removeHandler(self)
        super().close()
