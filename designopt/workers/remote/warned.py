"""What the suite warns of on a worker (a long compilation, the lack of a compiler): the coordinator tells the user."""

from __future__ import annotations

import logging
from collections.abc import Callable

#: Different texts of one worker that are sent on.
MOST = 50


class Warned(logging.Handler):
    """Gives each warning of designopt's own loggers to `tell`, once."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._tell = tell
        self._warned: set[str] = set()
        logging.getLogger("designopt").addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Called by `logging`."""
        text = record.getMessage()
        if text not in self._warned and len(self._warned) < MOST:
            self._warned.add(text)
            self._tell(text)

    def close(self) -> None:
        """Send no more."""
        logging.getLogger("designopt").removeHandler(self)
        super().close()
