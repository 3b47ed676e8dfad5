"""Solutions as plain arrays and a JSON header: reading them executes no code."""

from __future__ import annotations

import json
import math
import struct
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from designopt.collocation.solution.solution import (
    Arc,
    Attempt,
    ConstraintValues,
    Iterate,
    PhaseSolution,
    Round,
    Solution,
    StartRecord,
    Status,
)
from designopt.collocation.statement.mesh import SCHEMES, Mesh, Scheme
from designopt.collocation.transcription.layout import Block

Arrays = dict[str, NDArray[Any]]

#: Type and version in the header; an unknown version is rejected.
FORMAT, VERSION = "designopt trajectory", 1

_RECORDS: dict[str, Any] = {c.__name__: c for c in (Solution, PhaseSolution, Iterate, ConstraintValues, Block)}
_TUPLES: dict[str, Any] = {c.__name__: c for c in (Arc, Attempt, Round, StartRecord)}
#: Exceptions of readers of damaged files; zipfile raises RuntimeError (and NotImplementedError) for unsupported flags.
_BROKEN = (
    OSError, ValueError, LookupError, TypeError, AttributeError, EOFError, RuntimeError, OverflowError, MemoryError,
    struct.error, zipfile.BadZipFile, zlib.error,
)  # fmt: skip


def to_arrays(solution: Solution) -> Arrays:
    """`solution` as arrays by name; everything else is in the array "header", a JSON text in UTF-8 (uint8)."""
    arrays: Arrays = {}
    tree = _encode(solution, "", arrays)
    text = json.dumps({"format": FORMAT, "version": VERSION, "solution": tree}, allow_nan=False)
    return {"header": np.frombuffer(text.encode(), np.uint8), **arrays}


def from_arrays(arrays: Mapping[str, NDArray[Any]]) -> Solution:
    """The solution from the arrays of `to_arrays`. Raises `ValueError`, with a sentence, for anything else."""
    try:
        header = json.loads(bytes(np.asarray(arrays["header"], np.uint8)).decode())
        if header["format"] != FORMAT:
            raise ValueError(f"it is a '{header['format']}'")
        if header["version"] != VERSION:
            raise ValueError(f"its version is {header['version']}, this designopt reads version {VERSION}")
        solution = _decode(header["solution"], arrays)
    except _BROKEN as error:
        raise ValueError(f"this is not a readable trajectory result: {_reason(error)}") from error
    if not isinstance(solution, Solution):
        raise ValueError("this is not a readable trajectory result: it contains something else")
    return solution


def save_solution(solution: Solution, path: Path | str) -> None:
    """Write `solution` to the file `path` (npz). Raises `OSError`."""
    with Path(path).open("wb") as file:
        np.savez(file, **to_arrays(solution))  # type: ignore[arg-type]


def load_solution(path: Path | str) -> Solution:
    """The solution in the file `path`. Raises `ValueError`, with a sentence, for a damaged file or another type."""
    try:
        with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except FileNotFoundError:
        raise
    except _BROKEN as error:
        raise ValueError(f"{path}: this is not a readable trajectory result: {_reason(error)}") from error
    try:
        return from_arrays(arrays)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _reason(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else text[0] if text else type(error).__name__


def _encode(value: Any, key: str, arrays: Arrays) -> Any:
    """`value` as JSON; arrays are stored separately under their position in it."""
    kind = type(value).__name__
    if isinstance(value, np.ndarray):
        arrays[key] = value
        return {"array": key}
    if kind in _RECORDS:
        field_values = {f.name: getattr(value, f.name) for f in fields(value)}
        return {kind: {n: _encode(v, f"{key}.{n}" if key else n, arrays) for n, v in field_values.items()}}
    if isinstance(value, Mesh):
        return {"Mesh": {
            "nodes": _encode(value.nodes, f"{key}.nodes", arrays),
            "distinct": [_scheme_header(scheme) for scheme, _ in value.groups],
            "which": _encode(_scheme_indices(value), f"{key}.schemes", arrays),
            "left_point": value.left_point,
        }}  # fmt: skip
    if isinstance(value, Status):
        return {"Status": value.name}
    if isinstance(value, Mapping):
        return {"map": {name: _encode(v, f"{key}.{name}", arrays) for name, v in value.items()}}
    if isinstance(value, tuple):
        entries = [_encode(v, f"{key}.{i}", arrays) for i, v in enumerate(value)]
        return {kind if kind in _TUPLES else "tuple": entries}
    if isinstance(value, (float, np.floating)):
        return float(value) if math.isfinite(value) else {"float": repr(float(value))}
    if isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, np.integer)):
        return int(value)
    raise TypeError(f"{key}: a {kind} cannot be saved")


def _decode(tree: Any, arrays: Mapping[str, NDArray[Any]]) -> Any:
    if not isinstance(tree, dict):
        return tree
    [(kind, content)] = tree.items()
    if kind == "array":
        return np.asarray(arrays[content])
    if kind == "map":
        return {name: _decode(v, arrays) for name, v in content.items()}
    if kind == "tuple":
        return tuple(_decode(v, arrays) for v in content)
    if kind == "float":
        return float(content)
    if kind == "Status":
        return Status[content]
    if kind == "Mesh":
        distinct = [_scheme(header) for header in content["distinct"]]
        indices = _decode(content["which"], arrays)
        return Mesh(
            _decode(content["nodes"], arrays), tuple(distinct[k] for k in indices), content.get("left_point", False)
        )
    if kind in _TUPLES:
        return _TUPLES[kind](*(_decode(v, arrays) for v in content))
    return _RECORDS[kind](**{name: _decode(v, arrays) for name, v in content.items()})


def _scheme_indices(mesh: Mesh) -> NDArray[np.int64]:
    """The index of the scheme of each interval among the distinct ones."""
    indices = np.empty(len(mesh), np.int64)
    for number, (_, intervals) in enumerate(mesh.groups):
        indices[intervals] = number
    return indices


def _scheme_header(scheme: Scheme) -> dict[str, Any]:
    return {
        "name": scheme.name,
        "degree": scheme.degree,
        "linear_midpoint": bool(len(scheme.control_rows)),
    }


def _scheme(header: Mapping[str, Any]) -> Scheme:
    if header["name"] not in SCHEMES:
        raise ValueError(f"there is no scheme '{header['name']}'")
    return SCHEMES[header["name"]](header["degree"], header["linear_midpoint"])
