"""Versions of the software that computed a result."""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    """Of designopt, CasADi and NumPy; IPOPT and MUMPS come with CasADi."""
    from importlib.metadata import PackageNotFoundError, version

    version_of = {}
    for name in ("designopt", "casadi", "numpy"):
        try:
            version_of[name] = version(name)
        except PackageNotFoundError:
            version_of[name] = "unknown"
    return version_of
