"""Published problems from the straight line, by default and refined: the optimum, or what says why not."""

import csv
import re
from pathlib import Path

import pytest
from published import PUBLISHED, Published

from designopt.collocation import Options, Refinement, Solution, Status, solve

#: Relative to the optimum; a problem whose optimum is zero has a cost of the size of 1.
DIGITS = 1e-6


def deviation(solution: Solution, published: Published) -> float:
    return abs(solution.objective - published.optimum) / (abs(published.optimum) or 1.0)


def test_there_are_twenty_of_all_kinds() -> None:
    kinds = [p.kind for p in PUBLISHED.values()]

    assert len(PUBLISHED) >= 20
    assert sum("singular" in kind for kind in kinds) >= 5
    assert sum("bang-bang" in kind for kind in kinds) >= 5
    assert sum("stiff" in kind for kind in kinds) >= 3
    assert sum("pulse" in kind for kind in kinds) >= 2


@pytest.mark.slow
@pytest.mark.parametrize("name", PUBLISHED)
def test_the_default_gives_the_optimum_or_says_that_the_mesh_is_too_coarse(name: str) -> None:
    published = PUBLISHED[name]
    solution = solve(published.problem())

    assert solution.success
    assert not [warning for warning in solution.warnings if warning.startswith("badly_scaled")]
    assert solution.optimisation_error <= 1e-6 or published.optimum == 0.0
    if deviation(solution, published) > DIGITS + published.known_to:
        assert solution.error_estimate > DIGITS
        assert f"Error estimate {solution.error_estimate:.1e}" in solution.message


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in PUBLISHED if n != "four peaks"])  # which `test_refinement` resolves
def test_refined_meshes_give_the_optimum_to_its_digits(name: str) -> None:
    published = PUBLISHED[name]
    solution = solve(published.problem(), Options(refine=Refinement(1e-7, rounds=12)))

    assert solution.status in (Status.SOLVED, Status.REFINEMENT_STALLED)
    assert deviation(solution, published) <= DIGITS + published.known_to
    assert not [warning for warning in solution.warnings if warning.startswith("badly_scaled")]


def test_the_table_of_other_codes_is_what_was_measured() -> None:
    """The page shows the numbers of the file that `tests/bench/collocation/published_table.py` wrote."""
    root = Path(__file__).parents[3]
    with (root / "results" / "benchmarks" / "published_problems.csv").open(newline="") as file:
        measured = {(row["problem"], row["way"]): row for row in csv.DictReader(file)}
    page = (root / "docs" / "theory" / "collocation.md").read_text(encoding="utf-8")
    table = page[page.index("| problem | designopt |") :].split("\n\n")[0]
    (head, *lines) = re.findall(r"^\| (.*) \|$", table, flags=re.MULTILINE)
    ways = head.split(" | ")[1:]
    table_cells = {}
    for line in lines[1:]:
        name, *cells = line.split(" | ")
        table_cells |= {(name, way): cell for way, cell in zip(ways, cells, strict=True) if cell != "-"}
    assert table_cells.keys() == measured.keys()
    assert {name for name, _ in table_cells} == set(PUBLISHED)
    for key, row in measured.items():
        assert table_cells[key].split(", ") == [
            row["digits"] or "-",
            *(f"{row[k]} s" if row[k] else "-" for k in ("first_seconds", "repeat_seconds")),
            row["reached"],
        ]
