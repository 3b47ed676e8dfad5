"""Workers of a batch system: ``execution.cluster``, its type for memory and its second pass."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import PlainValidator, WithJsonSchema

from designopt.study.language.checking.refusals import is_number, value_error, wrong_kind
from designopt.study.language.findings import Path
from designopt.study.sections.context import Context
from designopt.study.study import Cluster

#: Bytes of the units of memory. Pint treats bytes as plain numbers and would accept radians here.
BYTES: dict[str, int] = {
    "B": 1,
    **{prefix + "B": 1000**power for power, prefix in enumerate(("k", "M", "G", "T"), 1)},
    **{prefix + "iB": 1024**power for power, prefix in enumerate(("K", "M", "G", "T"), 1)},
}
_AMOUNT = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,15})?)\s*([A-Za-z]+)")

#: Minimum memory for a worker with numpy, scipy and a model.
_MIN_BYTES = 100_000_000


def _bytes(value: Any) -> int:
    if is_number(value):
        raise value_error(f"a unit is missing, as in {value:g} GB (one of {', '.join(BYTES)})")
    if not isinstance(value, str):
        raise wrong_kind("an amount of memory such as 32 GB", value)
    match = _AMOUNT.fullmatch(value.strip())
    if match is None or match[2] not in BYTES:
        raise value_error(f"'{value[:40]}' is not an amount of memory; write it as 32 GB ({', '.join(BYTES)})")
    size: int = round(float(match[1]) * BYTES[match[2]])
    if size < _MIN_BYTES:
        raise value_error(f"must be at least 100 MB, not {value.strip()}")
    if size >= 2**63:
        raise value_error("the number is too large")
    return size


#: An amount of memory with its unit, in bytes: ``32 GB``.
Memory = Annotated[int, PlainValidator(_bytes), WithJsonSchema({"type": "string", "pattern": _AMOUNT.pattern})]


def cluster(ctx: Context, execution: Mapping[str, Any]) -> Cluster | None:
    """The cluster of the section `execution`, checked against the rest of it."""
    section = execution.get("cluster")
    if section is None:
        return None
    path: Path = ("execution", "cluster")
    if execution.get("executor") == "serial":
        ctx.add(path, "executor 'serial' has no workers; remove 'cluster' or use executor: dask", key="")
    if execution.get("scheduler", "local") != "local":
        ctx.add(path, "a cluster brings its own scheduler; leave out 'scheduler' or 'cluster'", key="")
    if "workers" in execution:
        ctx.add(("execution", "workers"), "a cluster has jobs * cores workers; leave out 'workers'", key="")
    jobs, minimum = section["jobs"], section.get("minimum")
    if jobs is not None and minimum is not None and minimum > jobs:
        ctx.add((*path, "minimum"), f"must be at most jobs ({jobs}), not {minimum}")
    if importlib.util.find_spec("dask_jobqueue") is None:
        ctx.add(path, "clusters need dask-jobqueue: pip install 'designopt[cluster]'", key="")
    return None if None in section.values() else Cluster(**section)
