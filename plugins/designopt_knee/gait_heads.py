"""Heads of the columns of one gait cycle, as laboratories write them: bare, or with their unit in brackets."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from designopt_recordings.files.names import name_and_unit

from designopt.study.language import units
from designopt_knee.gait_file import refused

#: Columns of a cycle, with their units.
CYCLE_COLUMNS = (
    "phase", "time_s", "hip_x_m", "hip_y_m", "thigh_deg", "shank_deg", "foot_deg", "knee_deg", "ankle_deg",
)  # fmt: skip


#: Columns by the name that a head with a unit has.
_COLUMN_OF = {column.rpartition("_")[0] or column: column for column in CYCLE_COLUMNS}
#: Least likeness of a head to a missing column that it may mean (`difflib`): 'Knee Flex' has 0.62 to 'knee'.
_LIKE = 0.6
_SUFFIX = re.compile("_(m|s|deg)$")


def cycle_column(head: str) -> tuple[str, float]:
    """The column of `CYCLE_COLUMNS` that a head such as ``knee [deg]`` or ``hip_y [mm]`` names, and the factor to its
    unit; the head itself, and 1, where it names none. Raises `InvalidSetting` for a unit of another quantity."""
    name, unit = name_and_unit(head)
    if not unit or name not in _COLUMN_OF:
        return head, 1.0
    column = _COLUMN_OF[name]
    try:
        return column, units.convert(1.0, unit, column.rpartition("_")[2] if "_" in column else "1")
    except units.UnitError as error:
        raise refused(f"column '{head}': {error}") from None


def check_heads(heads: Sequence[str], columns: Sequence[str]) -> None:
    """Raise `InvalidSetting` unless the `columns` that the `heads` of the file name are `CYCLE_COLUMNS`, in any
    order."""
    missing = [column for column in CYCLE_COLUMNS if column not in columns]
    unknown = [head for head, column in zip(heads, columns, strict=True) if column not in CYCLE_COLUMNS]
    duplicates = [head for row, head in enumerate(heads) if columns[row] in columns[:row]]
    if missing:
        is_single = len(missing) == 1
        message = f"column{'' if is_single else 's'} {_quoted(missing)} {'is' if is_single else 'are'} missing"
        near = {column: head for column in missing if (head := _nearest_head(column, unknown))}
        hints = [f"'{head}' for {column}" for column, head in near.items()]
        message += f"; did you mean {', '.join(hints)}?" if hints else ""
        without_hint = [head for head in unknown if head not in near.values()]
        message += f"; the file has {_quoted(without_hint)}" if without_hint else ""
    elif unknown or duplicates:
        message = f"column '{unknown[0]}' is unknown" if unknown else f"column '{duplicates[0]}' is there twice"
    else:
        return
    raise refused(f"{message}; the columns are {', '.join(CYCLE_COLUMNS)}, or with a unit in brackets, 'knee [rad]'")


def _nearest_head(column: str, heads: Sequence[str]) -> str:
    """The head that may mean the `column`; "" without any."""

    def likeness(head: str) -> float:
        base, head_base = (_SUFFIX.sub("", text) for text in (column, name_and_unit(head)[0].casefold()))
        return difflib.SequenceMatcher(None, base, head_base).ratio()

    head = max(heads, key=likeness, default="")
    return head if head and likeness(head) >= _LIKE else ""


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
