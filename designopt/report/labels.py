"""Names with units, numbers and hover texts of a report."""

from __future__ import annotations

import html
import math
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Floats
from designopt.plugin import path_of
from designopt.printable import one_line
from designopt.problem import derivative_name
from designopt.problem import figure_meaning as figure_meaning
from designopt.problem import figure_unit as figure_unit
from designopt.solvers.auto import Auto
from designopt.store.errors import allow_options, data_options, plugin_options
from designopt.store.views.table import stated_constraints, stated_units

if TYPE_CHECKING:
    from designopt.problem import Problem
    from designopt.store.result import Result
    from designopt.study.study import DesignVariable, Objective, Stage, StudyConstraint, Tolerance

#: Limits of the significant digits of an answer from programs.
LEAST_DIGITS, MOST_DIGITS = 2, 6
#: Largest rounding of a parameter's value, relative to its tolerance.
_SHARE_OF_TOLERANCE = 0.1
#: The mark of the recommended one of several designs.
RECOMMENDED = " (recommended)"
#: Maximum number of drawn designs of a study that lists them and has no objectives.
LISTED = 6
#: The label of the design of a study without free parameters.
ONLY_DESIGN = "the design"
#: A number is round-off, shown as 0, up to this size relative to what it was computed from.
ROUND_OFF = 1e-15
#: Standard deviation, relative to the size of the values, up to which it is round-off of equal ones.
EQUAL = 1e-12
#: Units of quantities that are computed from ones of size 1: numbers and angles.
_OF_SIZE_ONE = frozenset({"", "%", "rad", "deg"})
#: Maximum letters per line of a wrapped name, and maximum lines.
MIN_WIDTH, LINES = 9, 2


def number(value: Any, digits: int = 4) -> str:
    """`value` with `digits` significant digits, without an exponent if readable; "–" for a missing value."""
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if not isinstance(value, (float, np.floating)):
        return str(value)
    if not math.isfinite(value):
        return "–" if math.isnan(value) else ("∞" if value > 0 else "−∞")
    size = abs(float(value))
    if size == 0.0:
        return "0"
    if not 1e-4 <= size < 1e7:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        return f"{_trim(mantissa)}e{int(exponent)}"
    return _trim(f"{value:.{max(0, digits - 1 - math.floor(math.log10(size)))}f}")


def duration(seconds: float) -> str:
    """A time span in a suitable unit."""
    for unit, size in (("d", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{number(seconds / size, 3)} {unit}"
    return f"{number(seconds, 3)} s"


def answer_digits(result: Result) -> int:
    """Significant digits of the answer: solved trajectory programs have as many as published values, without those
    that their error estimate takes away."""
    best = result.best_program()
    if best is None:
        return 4
    error = best.figures.get("program(error_estimate)", math.inf)  # infinite ones are not recorded
    if error <= 0.0:
        return MOST_DIGITS
    return int(min(max(1 - math.floor(math.log10(min(error, 1.0))), LEAST_DIGITS), MOST_DIGITS))


def tolerances_in_use(result: Result) -> dict[str, Tolerance]:
    """The tolerances of parameters by name: stated ones, and assumed ones within which neighbours are evaluated."""
    tolerances = result.study.tolerances
    if tolerances is None or (tolerances.assumed and result.tolerated() is None):
        return {}
    return {tolerance.parameter: tolerance for tolerance in tolerances.of}


def parameter_digits(result: Result, name: str, value: object) -> int:
    """Significant digits of a `value` of a parameter: those of the answer, and at least four, without those below a
    tenth of its tolerance."""
    default_digits = max(answer_digits(result), 4)
    tolerance = tolerances_in_use(result).get(name)
    if tolerance is None or not isinstance(value, float) or not value or not math.isfinite(value):
        return default_digits
    size = tolerance.size * abs(value) if tolerance.relative else tolerance.size
    if size <= 0.0:
        return default_digits
    last_place = math.floor(math.log10(2.0 * _SHARE_OF_TOLERANCE * size))
    return min(max(math.floor(math.log10(abs(value))) - last_place + 1, LEAST_DIGITS), default_digits)


def parameter_text(result: Result, name: str, value: object) -> str:
    """A `value` of a parameter with its `parameter_digits`."""
    return number(value, parameter_digits(result, name, value))


def motion_of_program(result: Result, row: int) -> str:
    """``its program found 34.126 N^2 s``: a motion that is better than that of the model's evaluation; "" without."""
    value = result.better_motions.get(row)
    if value is None:
        return ""
    return f"its program found {number(value, answer_digits(result))} {result.problem.objectives[0].unit}".rstrip()


def difference_from_program(result: Result, row: int) -> str:
    """A clause if the model evaluates the design of the best program on a mesh of its own, and shown digits differ from
    those of the program, with the figure that differs most; "" otherwise, or where `motion_of_program` has one."""
    source, best, problem = result.stored or result, result.best_program(), result.problem
    if best is None or source.original is not None or motion_of_program(result, row):
        return ""
    design = source.problem.space.values(source.outcomes.X[row].tolist())
    if (source.best_program() or best).optimum != design or problem.model.plugin.takes_options:
        return ""
    objective, digits, scales = problem.objectives[0], answer_digits(result), display_scales(result)
    pairs = {
        objective.name: (float(objective_values(result)[row, 0]), best.figures["program(objective)"], objective.unit)
    }
    for name, (unit, values) in displayed_figures(result).items() if len(problem.scenarios) == 1 else ():
        if name in best.figures:
            pairs.setdefault(name, (float(values[row, 0]), scales[name][0] * best.figures[name], unit))
    apart = {
        name: abs(value - in_program) / max(abs(value), abs(in_program))
        for name, (value, in_program, _) in pairs.items()
        if number(value, digits) != number(in_program, digits)
    }
    if not apart:
        return ""
    name = max(apart, key=apart.__getitem__)
    value, in_program, unit = pairs[name]
    error = best.figures.get("program(error_estimate)")
    return (
        f"values are those of the model's evaluation, which has a mesh of its own: {name} {number(value, digits)} is"
        f" {number(in_program, digits)} {unit}".rstrip()
        + " in the program of the solver"
        + ("" if error is None else f" (error estimate {error:.1e})")
    )


def _trim(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def with_unit(name: str, unit: str) -> str:
    """``name [unit]``, or the name alone for a plain number."""
    return f"{name} [{unit}]" if unit else name


def per(unit: str, by: str) -> str:
    """The unit of a quantity in `unit` per `by`."""
    divisor = f"({by})" if re.search(r"[ */]", by) else by
    return f"{unit or '1'}/{divisor}" if by else unit


def plain(text: str) -> str:
    """`text` for a Plotly title, legend or hover, with markup and templates escaped."""
    return html.escape(text, quote=False).replace("%{", "% {")


def listed(words: Sequence[str]) -> str:
    """``a, b and c``."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def baseline_label(name: str) -> str:
    """The `name` of a baseline, marked as one where it does not say so."""
    return name if name == "baseline" else f"{name} (baseline)"


def parameter_label(p: DesignVariable) -> str:
    """A parameter's name with its unit in the study."""
    return with_unit(p.name, p.unit)


def objective_label(o: Objective) -> str:
    """The axis title of an objective: name, unit and direction."""
    return f"{with_unit(o.name, o.unit)} ({o.direction})"


def objective_labels(problem: Problem) -> list[str]:
    """The axis titles of the objectives."""
    return list(map(objective_label, problem.objectives))


def objective_amounts(objectives: Sequence[Objective], values: Floats) -> str:
    """``mass 1.2 kg, stiffness 3.4 N/m``: `values` (m,) of objectives, to be minimised, in their own directions."""
    pairs = zip(objectives, values, strict=True)
    return ", ".join(f"{o.name} {number(o.sign * float(value))} {o.unit}".strip() for o, value in pairs)


def objective_values(result: Result) -> Floats:
    """Objectives (n, m) in the study's form (maximised ones with their own sign); NaN without a value."""
    values = result.outcomes.objectives * np.array([o.sign for o in result.problem.objectives])
    return np.where(np.isfinite(values), values, np.nan)


def chosen_labels(result: Result) -> dict[int, list[str]]:
    """The labels of each chosen design, by its row."""
    labels: dict[int, list[str]] = {}
    for label, row in result.chosen().items():
        labels.setdefault(row, []).append(label)
    return labels


def chosen_once(result: Result) -> dict[str, int]:
    """The chosen designs, each once, with its labels joined."""
    return {", ".join(labels): row for row, labels in chosen_labels(result).items()}


def marked_designs(result: Result) -> dict[str, int]:
    """`chosen_once`, the recommended one of several marked as such."""
    rows_by_label, recommendation = chosen_once(result), result.recommended()
    row = recommendation[1] if recommendation is not None and len(rows_by_label) > 1 else None
    return {label + RECOMMENDED * (i == row): i for label, i in rows_by_label.items()}


def figure_designs(result: Result) -> dict[str, int]:
    """The designs of a figure: the `marked_designs`, or those of `rows_in_figures`, as ``design 407`` without a
    label."""
    label_of = {row: label for label, row in marked_designs(result).items()}
    return {label_of.get(row, f"design {row}"): row for row in result.rows_in_figures or label_of}


def as_subject(labels: Sequence[str]) -> str:
    """The labels of one design as the subject of a sentence: ``best mass (also compromise)``."""
    return labels[0] if len(labels) == 1 else f"{labels[0]} (also {listed(labels[1:])})"


def drawn_designs(result: Result) -> dict[str, int]:
    """The `figure_designs`, and the design with the smallest violation if none is feasible; without objectives the
    first ones with a result of those that the study lists."""
    designs, least_violating = figure_designs(result), result.least_violating()
    if result.rows_in_figures:
        return designs
    if least_violating is not None and least_violating not in designs.values():
        designs["least violation, not feasible"] = least_violating
    if not result.problem.objectives and result.study.lists_designs:
        rows = np.flatnonzero(~result.outcomes.failed)[:LISTED].tolist()
        names = design_names(result)
        designs |= {names[row] if row in result.named.values() else f"design {row}": row for row in rows}
    return designs


def stage_label(stage: Stage, problem: Problem) -> str:
    """The name of a stage, with the choice of the solver `auto`: ``auto (gp)``."""
    if stage.solver.plugin.target is not Auto:
        return stage.name
    return f"{stage.name} ({stage.solver.build().choice(problem).name})"


def design_names(result: Result) -> list[str]:
    """The label of each design: its name in the study, else its number."""
    names = {row: name for name, row in reversed(result.named.items())}
    return [names.get(i, str(i)) for i in range(len(result.outcomes))]


def values_in_words(
    result: Result, row: int, *, symbols: Mapping[str, str] | None = None, limit: int = 0, digits: int = 4
) -> str:
    """The free parameters of a design with their values, for a legend: at most `limit`, those with `symbols` first."""
    space, symbol_of = result.problem.space, dict(symbols or {})
    values = space.values(result.outcomes.X[row].tolist())
    order = list(symbol_of)
    free = sorted(space.free, key=lambda p: order.index(p.name) if p.name in symbol_of else len(symbol_of))
    words = []
    for p in free:
        if p.name in values:
            value = number(values[p.name], min(digits, parameter_digits(result, p.name, values[p.name])))
            words.append(f"{symbol_of.get(p.name, p.name)} {value} {p.unit}".strip())
    if limit and len(words) > limit:
        words = [*words[:limit], "…"]
    return ", ".join(words) or ONLY_DESIGN


def design_values(result: Result, row: int) -> list[Any]:
    """Values of the free parameters of a design, in their order; "–" for an inactive one."""
    design = result.problem.space.values(result.outcomes.X[row].tolist())
    return [design.get(p.name, "–") for p in result.problem.space.free]


def status_text(result: Result, status: str) -> str:
    """The `status` of an evaluation in words: one of a laboratory has no result, where a model has diverged."""
    return "no result" if status == "diverged" and result.made_elsewhere else status


def failure_class(result: Result, status: str, reason: str) -> str:
    """``nonfinite (travel)``; an evaluation made elsewhere has ``no result`` where a model has diverged."""
    words = status_text(result, status)
    return one_line(f"{words} ({reason})" if reason else words)


def recompute(result: Result, row: int) -> str:
    """The command that shows a design and evaluates it again, with its plugin files, data roots and allowed programs;
    "" if evaluations are made elsewhere."""
    if result.made_elsewhere:
        return ""
    files = "".join(f" --plugin {shlex.quote(name)}" for name, _ in result.study.plugin_files if name == path_of(name))
    options = plugin_options(result.path) or files  # a script that ran the study also declares plugins
    options += data_options(result.path) + allow_options(result.path)
    return f"designopt show {shlex.quote(f'{result.path}/{row}')} --evaluate{options}"


def design_rows(result: Result, rows: Mapping[str, int]) -> list[tuple[str, list[Any]]]:
    """Parameters, objectives and limits of designs, and with one scenario other figures that one of them has, as (name,
    values)."""
    problem, outcomes = result.problem, result.outcomes
    designs = [problem.space.values(outcomes.X[i].tolist()) for i in rows.values()]
    table: list[tuple[str, list[Any]]] = [
        (parameter_label(p), [d.get(p.name, "–") for d in designs]) for p in problem.space.parameters
    ]
    values = objective_values(result)
    for j, label in enumerate(objective_labels(problem)):
        table.append((label, [float(values[i, j]) for i in rows.values()]))
    table += limit_rows(result, rows)
    if problem.missing:
        table.append(("scenarios without a result", [int(result.missing[i]) for i in rows.values()]))
    if len(problem.scenarios) == 1:
        units_of_study = stated_units(problem)  # objectives and limits have these
        for name, line in zip(outcomes.figures, figure_rows(result, rows), strict=True):
            if name not in units_of_study and not all(isinstance(v, float) and math.isnan(v) for v in line[1]):
                table.append(line)
    return table


def displayed_figures(result: Result) -> dict[str, tuple[str, Floats]]:
    """The figures by name, each with its unit and values (designs, scenarios): in the units of `display_scales`, and 0
    for round-off, relative to the largest value of a figure in the same unit. Objectives keep theirs."""
    table = {
        name: (unit, values if factor == 1.0 else factor * values)
        for (name, values), (factor, unit) in zip(
            result.outcomes.figures.items(), display_scales(result).values(), strict=True
        )
    }
    largest: dict[str, float] = {}
    for unit, values in table.values():
        size = np.abs(values, where=np.isfinite(values), out=np.zeros_like(values)).max(initial=0.0)
        largest[unit] = max(largest.get(unit, 1.0 if unit in _OF_SIZE_ONE else 0.0), float(size))
    objectives = {o.expression.text for o in result.problem.objectives}
    return {
        name: (unit, values if name in objectives else without_round_off(values, largest[unit]))
        for name, (unit, values) in table.items()
    }


def without_round_off(values: Floats, size: float) -> Floats:
    """The `values` with 0 for those that are round-off of numbers of this `size`."""
    small = np.abs(values) <= ROUND_OFF * size
    return np.where(small, 0.0, values) if small.any() else values


def display_scales(result: Result) -> dict[str, tuple[float, str]]:
    """The factor and the unit in which each figure is displayed: in the unit of an objective or a limit of the study,
    else in the model's, but angles in deg as in figures, so that a quantity has one unit on the whole page. Recorded
    derivatives are converted likewise, with the parameter in the unit of the study."""
    problem, figures = result.problem, result.outcomes.figures
    scales = {name: displayed_in(figure_unit(problem, name)) for name in figures} | stated_units(problem)
    for p in problem.space.free:
        for name in [name for name in figures if derivative_name(name, p.name) in figures]:
            factor, unit = scales[name]
            scales[derivative_name(name, p.name)] = factor * p.factor, per(unit, p.unit)
    return {name: scales[name] for name in figures}


def displayed_in(unit: str) -> tuple[float, str]:
    """Factor and unit in which a quantity in `unit` is displayed."""
    return (math.degrees(1.0), "deg") if unit == "rad" else (1.0, unit)


def figure_rows(result: Result, rows: Mapping[str, int]) -> list[tuple[str, list[float]]]:
    """Figures of designs as (name, values): for each design one value per scenario."""
    return [
        (with_unit(name, unit), [float(v) for i in rows.values() for v in figure[i]])
        for name, (unit, figure) in displayed_figures(result).items()
    ]


def limit_rows(result: Result, rows: Mapping[str, int]) -> list[tuple[str, list[Any]]]:
    """Limited values of designs, as (name with the limit, values): the value nearest to the limit, and both ends if it
    has two."""
    table: list[tuple[str, list[Any]]] = []
    for c in stated_constraints(result.problem):
        low, high = limited_values(result, c)
        limits = [f"≥ {number(c.minimum)}"] if c.minimum is not None else []
        limits += [f"≤ {number(c.maximum)}"] if c.maximum is not None else []
        limits += [f"= {number(c.equals)}"] if c.equals is not None else []
        values = [_nearest_value(c, float(low[i]), float(high[i])) for i in rows.values()]
        table.append((f"{with_unit(c.name, c.unit)} ({', '.join(limits)})", values))
    return table


def limited_values(result: Result, c: StudyConstraint) -> tuple[Floats, Floats]:
    """Smallest and largest value (n,) of what `c` limits, with 0 for round-off relative to the limit."""
    ends = result.problem.limited(c, result.outcomes.figures, len(result.outcomes))
    size = max(abs(limit) for limit in (c.minimum, c.maximum, c.equals) if limit is not None)
    size = size or (1.0 if c.unit in _OF_SIZE_ONE else 0.0)
    low, high = (without_round_off(end, size) for end in ends)
    return low, high


def _nearest_value(c: StudyConstraint, low: float, high: float) -> Any:
    if c.maximum is None and c.equals is None:
        return low
    if (c.minimum is None and c.equals is None) or low == high:
        return high
    return f"{number(low)} to {number(high)}"


def hover(result: Result, *, figures: bool = True) -> str:
    """Plotly ``hovertemplate`` with a design's number, parameters, objectives and, with one scenario and `figures`, its
    figures. Its values are those of `hover_columns`: the page adds them to traces listed in `Figure.designs`."""
    none = np.empty(0, dtype=np.intp)
    lines = []
    first_columns = 1 + len(result.problem.space.free) + len(result.problem.objectives)
    for k, (label, values) in enumerate(hover_columns(result, none)):
        if k < first_columns or figures:
            form = ":.5~g" if isinstance(values, np.ndarray) and values.dtype.kind == "f" else ""
            lines.append(f"{plain(label)}: <b>%{{customdata[{k}]{form}}}</b>")
    return "<br>".join(lines) + "<extra></extra>"


def hover_columns(result: Result, rows: NDArray[np.intp]) -> list[tuple[str, Any]]:
    """Hover data of the designs `rows`: names and values, numbers as arrays."""
    problem, outcomes = result.problem, result.outcomes
    columns: list[tuple[str, Any]] = [("design", np.asarray(rows, dtype=np.int32))]
    active = problem.space.active(outcomes.X[rows])
    for j, p in enumerate(problem.space.free):
        x: Any = outcomes.X[rows, j]
        if p.kind == "choice" or p.when:  # by its type, not by the values of this batch: the template must fit all
            texts = [plain(str(p.values[int(v)])) for v in x] if p.kind == "choice" else [number(v, 5) for v in x]
            x = [v if a else "–" for v, a in zip(texts, active[:, j].tolist(), strict=True)]
        columns.append((parameter_label(p), x))
    columns += zip(objective_labels(problem), objective_values(result)[rows].T, strict=True)
    if len(problem.scenarios) == 1:
        for name, (unit, values) in displayed_figures(result).items():
            columns.append((with_unit(name, unit), values[rows, 0]))
    return columns


def wrapped(label: str, room: int) -> str:
    """`label` in lines of about `room` letters, broken at spaces and underscores, without an objective's direction."""
    label = label.removesuffix(" (minimize)").removesuffix(" (maximize)")
    room = max(room, MIN_WIDTH)
    lines = [""]
    for word in re.findall(r"[^_ ]*[_ ]?", label):
        if lines[-1] and len(lines[-1]) + len(word.rstrip()) > room:
            lines.append("")
        lines[-1] += word
    if len(lines) > LINES:  # the beginning and the end (the unit) are most informative
        lines = [*lines[: LINES - 2], "".join(lines[LINES - 2 : -1]), lines[-1]]
    lines = [line.strip() for line in lines]
    return "<br>".join(plain(line if len(line) <= room + 4 else line[: room + 3] + "…") for line in lines)


def titled(label: str, room: int) -> str:
    """`label` unchanged if it fits, else `wrapped`."""
    return plain(label) if len(label) <= room else wrapped(label, room)


def thinned(rows: NDArray[np.intp], limit: int) -> NDArray[np.intp]:
    """At most `limit` of `rows`, evenly spread in ask order, and reproducible."""
    if len(rows) <= limit:
        return rows
    return rows[np.unique(np.linspace(0, len(rows) - 1, limit).astype(np.intp))]


def active_values(result: Result) -> NDArray[np.float64]:
    """The designs (n, d) for drawing: NaN for inactive parameters, which are not drawn."""
    X = result.outcomes.X
    space = result.problem.space
    return np.where(space.active(X), X, np.nan) if space.conditional else X
