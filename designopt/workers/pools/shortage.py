"""Resources that the system refuses: threads, processes, open files and shared memory."""

from __future__ import annotations

import errno
import multiprocessing
from collections.abc import Iterator

NO_THREADS = (
    "the system allows no more threads or processes (ulimit -u shows the limit; containers and batch jobs have limits "
    "of their own); end other programs, or use fewer workers (--workers) or none (--executor serial)"
)

#: Open files for the process of a run itself, and for each worker and its nanny.
FILES, FILES_A_WORKER = 48, 16


def needed_files(workers: int) -> int:
    """Number of open files of a run with so many workers on this machine."""
    return FILES + FILES_A_WORKER * workers


def allows_files(workers: int) -> bool:
    """Whether the system allows the files that such a run needs, as far as it tells."""
    try:
        import resource
    except ImportError:  # a system without such limits
        return True
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return limit == resource.RLIM_INFINITY or limit >= needed_files(workers)


def without_threads(error: BaseException) -> bool:
    """Whether the cause of `error` is the limit of threads or processes."""
    return any(
        (isinstance(cause, OSError) and cause.errno == errno.EAGAIN) or "can't start new thread" in str(cause)
        for cause in _causes(error)
    )


def without_files(error: BaseException) -> bool:
    """Whether the cause of `error` is the limit of open files."""
    return any(
        (isinstance(cause, OSError) and cause.errno in (errno.EMFILE, errno.ENFILE))
        or "Too many open files" in str(cause)
        for cause in _causes(error)
    )


def no_shared_memory() -> str:
    """Why a new process cannot have a semaphore, which Linux keeps in /dev/shm; "" if it can."""
    try:
        multiprocessing.get_context("spawn").Lock()
    except (OSError, ImportError) as error:
        if without_files(error):
            return ""
        reason = (isinstance(error, OSError) and error.strerror) or str(error)
        return (
            f"workers need shared memory, and none is available ({reason}): /dev/shm is full, not writable or missing; "
            "free or mount it, or use no workers (--executor serial)"
        )
    return ""


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
