"""The table of shares from the runs that `measure.py` left in a folder: ``python table.py FOLDER``.

`--write` puts them into ``results/benchmarks/few_evaluations.csv``, one row for each problem, search, seed and number
of evaluations. Rows of runs that are not in the folder stay. The medians printed are those of both together.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
from collections import defaultdict
from pathlib import Path

import numpy as np
from problems import TWELVE, share

HEAD = ("problem", "search", "seed", "evaluations", "share", "processor_ms")
RESULTS = Path(__file__).parents[3] / "results" / "benchmarks" / "few_evaluations.csv"


def rows(folder: Path, counts: tuple[int, ...] = (50, 100, 200)) -> list[tuple[str, str, int, int, float, float]]:
    """Shares of all runs that are as long as one of `counts`; processor time per design if recorded."""
    found = []
    for path in sorted(folder.glob("*.jsonl")):
        name, search, seed = path.stem.split("-")
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        designs = [one for one in lines if "ok" in one]
        total = next((one["processor_s"] for one in lines if "processor_s" in one), None)
        for count in counts:
            if len(designs) < count:
                continue
            F = np.array([one["f"] for one in designs[:count] if one["ok"]])
            spent = sum(one["s"] for one in designs[:count]) if total is None else total * count / len(designs)
            found.append((name, search, int(seed), count, share(name, F), 1e3 * spent / count))
    return found


def written() -> list[tuple[str, str, int, int, float, float]]:
    """The rows of the table as it is."""
    with RESULTS.open(encoding="utf-8", newline="") as file:
        return [
            (problem, search, int(seed), int(count), float(value), float(spent))
            for problem, search, seed, count, value, spent in list(csv.reader(file))[1:]
        ]


def main() -> None:
    """Add runs to the table and print its medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    order = {name: i for i, name in enumerate(TWELVE)}
    by_run = {row[:4]: row for row in (*written(), *rows(given.folder)) if row[0] in order}
    found = sorted(by_run.values(), key=lambda row: (order[row[0]], *row[1:4]))
    if given.write:
        with RESULTS.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(HEAD)
            writer.writerows((*row[:4], f"{row[4]:.4f}", f"{row[5]:.1f}") for row in found)
    for count in sorted({row[3] for row in found}):
        values = defaultdict(list)
        for name, search, _, n, value, _ in found:
            if n == count:
                values[name, search].append(value)
        searches = sorted({search for _, search in values})
        print(f"\n{count} evaluations\n{'':22}" + "".join(f"{s:>16}" for s in searches))
        for name in sorted({name for name, _ in values}):
            cells = [values[name, s] for s in searches]
            print(
                f"{name:22}" + "".join(f"{statistics.median(v):12.3f} ({len(v)})" if v else f"{'':16}" for v in cells)
            )


if __name__ == "__main__":
    main()
