"""Start code of the process from which local workers are forked (`designopt.workers.pools.forking`)."""

from __future__ import annotations

import atexit
import os
import shutil
import warnings

#: Variables for that process alone, not for child processes of models: the names of those to remove, the folder of
#: multiprocessing's sockets, and Python's own that excludes the current folder from the module search.
ORIGIN, SOCKETS, SAFE_PATH = "DESIGNOPT_ORIGIN", "DESIGNOPT_SOCKETS", "PYTHONSAFEPATH"


def begin() -> None:
    """Leave the process group of the run, which a terminal ends as a whole; workers get their own random numbers.

    Orphans of dead workers become children of this process, and end with it at the latest. It ends by itself only when
    the process of the run has been killed, and removes the folder of sockets that this one leaves.
    """
    import numpy as np

    from designopt.workers.supervision.children import adopt_orphans, end_descendants, lead_group

    sockets = os.environ.pop(SOCKETS)
    for name in os.environ.pop(ORIGIN).split():
        os.environ.pop(name, None)
    lead_group()
    adopt_orphans()
    warnings.filterwarnings("ignore", "forkserver: waitpid returned unexpected pid")  # the end of such a child
    atexit.register(end_descendants, os.getpid())
    atexit.register(shutil.rmtree, sockets, ignore_errors=True)
    os.register_at_fork(after_in_child=np.random.seed)
    os.register_at_fork(after_in_child=lambda: atexit.unregister(shutil.rmtree))
    os.register_at_fork(after_in_child=lambda: atexit.unregister(end_descendants))


if ORIGIN in os.environ:
    begin()
