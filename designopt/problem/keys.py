"""Keys of evaluations, independent of the study."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from operator import itemgetter

import numpy as np

from designopt.arrays import Floats
from designopt.canonical_form import canonical_json, canonical_use, tagged_bytes
from designopt.plugin import SolverPlugin, Use
from designopt.problem.statement import Statement
from designopt.space import display_value, in_model_unit


class Keys:
    """The keys of the evaluations of a problem.

    BLAKE2b-128 of plugin name, version, settings, scenario and the parameter values as doubles in the model's units;
    integers and choices keep their type. The order of parameters in the file does not matter. Inactive parameters are
    omitted.
    """

    def __init__(self, problem: Statement) -> None:
        self._space = problem.space
        use, special = canonical_use(problem.model), [problem.special_entries] if problem.special_entries else []
        figures = {name: canonical_use(figure) for name, figure in problem.figures.items()}
        identities = ([use, figures, problem.key_values(s), *special, *problem.key_shift(s)] for s in problem.scenarios)
        #: One partial hash per scenario: model, version, settings, computed figures and scenario.
        self._digests = [hashlib.blake2b(canonical_json(each).encode(), digest_size=16) for each in identities]
        column = {p.name: j for j, p in enumerate(self._space.free)}
        parameters = [(p.name.encode() + b"\0", p, column.get(p.name)) for p in self._space.parameters]
        #: Parameters in the order of keys, with their names and their columns.
        self._parameters = sorted(parameters, key=itemgetter(0))

    @property
    def scenarios(self) -> list[bytes]:
        """The part of the keys common to all designs, per scenario."""
        return [digest.digest() for digest in self._digests]

    def for_designs(self, X: Floats) -> list[list[bytes]]:
        """The keys (16 bytes each) of designs `X` (n, d), a list over scenarios per design. Raises `ValueError` for
        values that are not finite."""
        if not np.isfinite(X).all():
            raise ValueError("a design value is NaN or infinite")
        bodies = list(map(b"".join, zip(*self._columns(X), strict=True)))
        columns = [[_digest(digest.copy(), body) for body in bodies] for digest in self._digests]
        return list(map(list, zip(*columns, strict=True)))

    def _columns(self, X: Floats) -> list[list[bytes]]:
        """The entry of each parameter in the keys of designs `X`, in the order of their names."""
        activity = self._space.activity(X)
        columns = [[b""] * len(X)]
        for name, p, j in self._parameters:
            if j is None:
                entries = [name + tagged_bytes(in_model_unit(p, p.values[0]))] * len(X)
            elif p.kind == "real":
                doubles = (np.asarray(in_model_unit(p, X[:, j])) + 0.0).astype("<f8").tobytes()
                entries = [name + b"d" + doubles[i : i + 8] for i in range(0, len(doubles), 8)]
            else:
                distinct, inverse = np.unique(X[:, j], return_inverse=True)
                texts = [name + tagged_bytes(in_model_unit(p, display_value(p, x))) for x in distinct.tolist()]
                entries = [texts[i] for i in inverse.tolist()]
            if p.name in activity:
                entries = [e if active else b"" for e, active in zip(entries, activity[p.name].tolist(), strict=True)]
            columns.append(entries)
        return columns


def _digest(digest: hashlib.blake2b, body: bytes) -> bytes:
    digest.update(body)
    return digest.digest()


def program_keys(
    problem: Statement, solver: Use[SolverPlugin], X: Floats, chains: Sequence[int], seeds: Sequence[int]
) -> list[bytes]:
    """Keys of programs (see `Evaluate.programs`): hash of the whole problem, the solver with its settings, and all rows
    of the chain up to this one, on which the solution may depend."""
    digest = hashlib.blake2b(
        canonical_json(["program", problem.canonical(), canonical_use(solver)]).encode(), digest_size=16
    )
    keys, running, last = [], digest.copy(), None
    for x, chain, seed in zip(X, chains, seeds, strict=True):
        if chain != last:
            running, last = digest.copy(), chain
        running.update(np.asarray(x, "<f8").tobytes() + struct.pack("<q", seed))
        keys.append(running.digest())
    return keys


def evaluation_seed(key: bytes, study_seed: int) -> int:
    """The seed of the random numbers of the evaluation `key`, independent of order and worker."""
    study = (study_seed % 2**64).to_bytes(8, "little")
    return int.from_bytes(hashlib.blake2b(key + study, digest_size=8).digest(), "little")
