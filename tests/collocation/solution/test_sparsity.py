"""Maps of where the derivatives of a program are not zero."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from benchmark_problems import block_move, cart_pole, fastest, goddard

from designopt.collocation import Constraint, Options, Program, TrajectoryProblem
from designopt.collocation.solution.sparsity import CELLS, sparsity_arrays, sparsity_from


def test_a_map_counts_every_entry_of_the_derivatives() -> None:
    program = Program(cart_pole(), Options(intervals=100))
    made, found = program.transcription, program.sparsity

    J, H = made.jacobian.sparsity_out(1), made.hessian.sparsity_out(made.hessian.n_out() - 1)
    assert found.jacobian.shape == (J.size1(), J.size2())
    assert found.jacobian.nonzeros == J.nnz() == found.jacobian.counts.sum()
    diagonal = sum(int(i == j) for i, j in zip(H.row(), H.get_col(), strict=True))
    assert found.hessian.nonzeros == 2 * H.nnz() - diagonal == found.hessian.counts.sum()
    assert (found.hessian.counts == found.hessian.counts.T).all()
    assert max(found.jacobian.counts.shape) <= CELLS
    assert 0.0 < found.jacobian.density < 0.02


def test_a_small_program_has_a_cell_for_each_entry() -> None:
    program = Program(block_move(), Options(intervals=3))
    J = program.transcription.jacobian.sparsity_out(1)
    dense = np.zeros((J.size1(), J.size2()), int)
    dense[J.row(), J.get_col()] = 1

    assert (program.sparsity.jacobian.counts == dense).all()


def test_blocks_have_names_and_begin_where_they_say() -> None:
    limited = replace(goddard(), constraints={"fast": Constraint(lambda e: e.duration * e.final["v"], high=9.0)})
    program = Program(limited, Options(intervals=20))
    found = program.sparsity

    assert found.jacobian.rows == (("rates", 0), ("between ends", 120))
    assert [name for name, _ in found.jacobian.columns] == ["points of the motion", "times"]
    assert found.jacobian.columns[1][1] == program.transcription.layout.phases[0].tf
    assert found.hessian.rows == found.hessian.columns == found.jacobian.columns


def test_phases_and_path_constraints_are_distinguished() -> None:
    first = goddard()
    again = replace(first.phases[0], name="again", path={"low": Constraint(lambda v: v["v"])})
    names = [n for n, _ in Program(TrajectoryProblem([first.phases[0], again], lambda e: 0.0)).sparsity.jacobian.rows]

    assert names == ["motion: rates", "again: rates", "again: path low"]


def test_arrays_give_it_back_and_are_small() -> None:
    found = Program(fastest(goddard().phases[0]), Options(intervals=500)).sparsity
    arrays = sparsity_arrays(found)
    again = sparsity_from(arrays)

    assert again is not None
    for name in ("jacobian", "hessian"):
        one, other = getattr(found, name), getattr(again, name)
        assert (one.counts == other.counts).all()
        assert (one.shape, one.nonzeros, one.rows, one.columns) == (
            other.shape,
            other.nonzeros,
            other.rows,
            other.columns,
        )
    assert sum(array.nbytes for array in arrays.values()) < 20_000
    assert sparsity_from({}) is None
