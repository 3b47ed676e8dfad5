"""``designopt show STORE/POINT --files FOLDER``: the files of an evaluation, written again."""

from __future__ import annotations

import io
import sys
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from designopt import plugin
from designopt.cli.design import comparison, evaluate_design, refuse_absent, row_of
from designopt.cli.exit import DIFFERENT, STORE, WRONG_INPUT, echo, fail
from designopt.cli.opening import open_result

if TYPE_CHECKING:
    from designopt.store.result import Result

#: The array with the files of an evaluation.
ARRAY = "folder"


def write_files(
    store: str,
    point: str,
    folder: str,
    plugin_files: tuple[str, ...],
    data: Mapping[str, str],
    *,
    evaluate: bool = False,
    allow: Sequence[str] = (),
) -> None:
    """Write the files of the design `point` of `store` into the new `folder`, in a folder per scenario if there are
    several.

    Without `evaluate` these are the stored files of the evaluation, else its input files; with it the evaluation is
    repeated, and the command ends with 1 if numbers differ.
    """
    result = open_result(store, plugin_files, data)
    row = row_of(result, point)
    refuse_absent(result)
    model = result.problem.model
    if not model.plugin.has("write_files"):
        fail(f"error: the model '{model.plugin.name}' has no input files", WRONG_INPUT)
    target = Path(folder)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        fail(f"error: {folder} exists already; name a new folder", WRONG_INPUT)
    equal = True
    for k, scenario in enumerate(result.problem.scenarios):
        subfolder = target / scenario.name if len(result.problem.scenarios) > 1 else target
        try:
            subfolder.mkdir(parents=True, exist_ok=True)
            if evaluate:
                equal &= _repeat(result, row, k, subfolder, plugin.Permission.from_options(allow))
            else:
                _write_stored(result, row, k, subfolder)
        except (OSError, ValueError, tarfile.TarError) as error:
            fail(f"{subfolder}: the files cannot be written: {error}", STORE)
    sys.exit(0 if equal else DIFFERENT)


def _write_stored(result: Result, row: int, k: int, folder: Path) -> None:
    """The stored files of an evaluation, else its input files."""
    scenario = result.problem.scenarios[k]
    archive = result.arrays(row, scenario.name).get(ARRAY)
    if archive is not None:
        _unpack(archive, folder)
        echo(f"files        {folder} (of the evaluation in the run)")
        return
    values = {**scenario.values, **result.problem.space.design(result.outcomes.X[row].tolist())}
    result.problem.model.build().write_files(folder, values)
    echo(f"input files  {folder}")


def _repeat(result: Result, row: int, k: int, folder: Path, permission: plugin.Permission) -> bool:
    """Evaluate the design again and write its files; returns whether the numbers are those on record."""
    scenario = result.problem.scenarios[k].name
    values = result.problem.space.values(result.outcomes.X[row].tolist())
    evaluation = evaluate_design(result, values, scenario, (ARRAY,), permission)
    if ARRAY in evaluation.arrays:
        _unpack(evaluation.arrays[ARRAY], folder)
    text, is_equal = comparison(result, row, k, evaluation)
    echo(f"recomputed in {scenario}: {evaluation.status}: {text}")
    echo(f"files        {folder}")
    return is_equal


def _unpack(archive: Any, folder: Path) -> None:
    """Write the files of an archive; its names cannot lead out of `folder`."""
    with tarfile.open(fileobj=io.BytesIO(archive.tobytes()), mode="r:gz") as files:
        files.extractall(folder, filter="data")
