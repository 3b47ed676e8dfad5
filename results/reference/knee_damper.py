"""Writes knee_damper_front.csv and knee_damper_run.json from a store of studies/knee_damper.yaml.

python results/reference/knee_damper.py results/knee_damper.study
"""

from __future__ import annotations

import csv
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import designopt

HERE = Path(__file__).parent
#: With their digits: amplitudes of rounding are none.
FIGURES = {"subharmonic": ".3f", "toe_clearance": ".6g", "floquet_modulus": ".6g", "flip_margin": ".6g"}


def main(store: str, *changes: str) -> None:
    """`changes` are texts as for ``designopt report --set``."""
    result = designopt.open_store(store)
    if changes:
        result = result.with_changes(changes)
    space, outcomes = result.problem.space, result.outcomes
    front = result.front()
    names = [objective.name for objective in result.problem.objectives]

    def row(i: int) -> dict[str, Any]:
        aims = {name: float(f"{value:.6g}") for name, value in zip(names, outcomes.objectives[i], strict=True)}
        return {**space.values(outcomes.X[i].tolist()), **aims}

    with (HERE / "knee_damper_front.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, [*space.names, *names, *FIGURES], lineterminator="\n")
        table.writeheader()
        for i in front.tolist():
            more = {name: format(outcomes.figures[name][i, 0], digits) for name, digits in FIGURES.items()}
            table.writerow(row(i) | more)
    failures = Counter(
        f"{status} ({reason})"
        for status, reason in zip(result.status.ravel().tolist(), result.reason.ravel().tolist(), strict=True)
        if status != "ok"
    )
    run = {
        "study": "studies/knee_damper.yaml",
        "problem": result.problem.digest,
        "designs": result.counts["designs"],
        "evaluations": result.counts["evaluations"],
        "feasible": result.counts["feasible"],
        "front": len(front),
        "hypervolume": float(f"{result.hypervolume():.6g}"),
        "failures": dict(failures),
        "chosen": {label: row(i) for label, i in result.chosen().items() if i in front},
    }
    text = json.dumps(run, indent=2)
    (HERE / "knee_damper_run.json").write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
