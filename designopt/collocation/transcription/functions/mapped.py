"""A function of one point for many points: in blocks, where a call costs more than what it computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from designopt.lazy import casadi as ca

#: Points that are one call. CasADi's map takes 0.2 us for each, a small function for its operations a tenth of that.
BLOCK = 16
#: A function with more operations gains nothing.
SMALL = 500


def mapped(function: Any, count: int, arguments: Sequence[Any]) -> Any:
    """The results (rows, count), side by side, of a function with one result at `arguments` (rows, count) each."""
    blocks, rest = divmod(count, BLOCK)
    if not blocks or not function.is_a("SXFunction") or function.n_nodes() > SMALL:
        return function.map(count)(*arguments)
    block = function.map(BLOCK).expand()
    many = block.map(blocks) if blocks > 1 else block
    if not rest:
        return many(*arguments)
    parts = zip(*(ca.horzsplit(a, [0, count - rest, count]) for a in arguments), strict=True)
    first, last = parts
    return ca.horzcat(many(*first), function.map(rest)(*last))
