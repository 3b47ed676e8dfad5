"""Measurements of every peer's script: one line of JSON after all output of the peer itself."""

import json
import statistics
import sys
import time
from collections.abc import Callable


def arguments(variants: tuple[str, ...]) -> tuple[int, int, str]:
    """Intervals, repeats and variant from ``SCRIPT N REPEATS [VARIANT]``; the first variant is the default."""
    intervals, repeats = int(sys.argv[1]), int(sys.argv[2])
    variant = sys.argv[3] if len(sys.argv) > 3 else variants[0]
    if variant not in variants:
        sys.exit(f"no variant {variant!r}; there are {', '.join(variants)}")
    return intervals, repeats, variant


def measured(solve: Callable[[], None], repeats: int) -> dict[str, float]:
    """Seconds of the first solve, and medians (wall clock and processor) of the `repeats` after it from the same guess.

    The processor's time is the steadier measure on a machine with other work.
    """
    wall, processor = [], []
    for _ in range(repeats + 1):
        began = time.perf_counter(), time.process_time()
        solve()
        wall.append(time.perf_counter() - began[0])
        processor.append(time.process_time() - began[1])
    return {
        "first_seconds": wall[0],
        "repeat_seconds": statistics.median(wall[1:]),
        "repeat_cpu_seconds": statistics.median(processor[1:]),
    }


def answer(**figures) -> None:
    """Print the line that the benchmark reads."""
    print(json.dumps(figures), flush=True)
