"""What the process does first that local workers are forked from (`designopt.workers.pools.forking`)."""

from __future__ import annotations

import atexit
import os
import warnings

#: Variables for that process alone, not for what models start: the names of those of them that it is to forget, and
#: Python's own that keeps the present folder out of the search for modules.
ORIGIN, SAFE_PATH = "DESIGNOPT_ORIGIN", "PYTHONSAFEPATH"


def begin() -> None:
    """Leave the group of the run's process, which a terminal ends as a whole; workers draw numbers of their own.

    What workers leave behind when they die becomes a child of this process, and ends with it at the latest.
    """
    import numpy as np

    from designopt.workers.supervision.children import adopt_orphans, end_descendants, lead_group

    for name in os.environ.pop(ORIGIN).split():
        os.environ.pop(name, None)
    lead_group()
    adopt_orphans()
    warnings.filterwarnings("ignore", "forkserver: waitpid returned unexpected pid")  # such a child's end
    atexit.register(end_descendants, os.getpid())
    os.register_at_fork(after_in_child=np.random.seed)
    os.register_at_fork(after_in_child=lambda: atexit.unregister(end_descendants))


if ORIGIN in os.environ:
    begin()
