"""Maps of where the derivatives of a program are not zero."""

from dataclasses import replace

import numpy as np
from benchmark_problems import block_move, cart_pole, fastest, goddard

from designopt.collocation import Constraint, Options, Program, TrajectoryProblem
from designopt.collocation.solution.sparsity import CELLS, sparsity_arrays, sparsity_from


def test_a_map_counts_every_entry_of_the_derivatives() -> None:
    program = Program(cart_pole(), Options(intervals=100))
    transcription, sparsity = program.transcription, program.sparsity

    J, H = transcription.jacobian.sparsity_out(1), transcription.hessian.sparsity_out(transcription.hessian.n_out() - 1)
    assert sparsity.jacobian.shape == (J.size1(), J.size2())
    assert sparsity.jacobian.nonzeros == J.nnz() == sparsity.jacobian.counts.sum()
    diagonal = sum(int(i == j) for i, j in zip(H.row(), H.get_col(), strict=True))
    assert sparsity.hessian.nonzeros == 2 * H.nnz() - diagonal == sparsity.hessian.counts.sum()
    assert (sparsity.hessian.counts == sparsity.hessian.counts.T).all()
    assert max(sparsity.jacobian.counts.shape) <= CELLS
    assert 0 < sparsity.jacobian.nonzeros < 0.02 * J.numel()


def test_a_small_program_has_a_cell_for_each_entry() -> None:
    program = Program(block_move(), Options(intervals=3))
    J = program.transcription.jacobian.sparsity_out(1)
    dense = np.zeros((J.size1(), J.size2()), int)
    dense[J.row(), J.get_col()] = 1

    assert (program.sparsity.jacobian.counts == dense).all()


def test_blocks_have_names_and_begin_where_they_say() -> None:
    limited = replace(goddard(), constraints={"fast": Constraint(lambda e: e.duration * e.final["v"], high=9.0)})
    program = Program(limited, Options(intervals=20))
    sparsity = program.sparsity

    assert sparsity.jacobian.rows == (("rates", 0), ("between ends", 120))
    assert [name for name, _ in sparsity.jacobian.columns] == ["points of the motion", "times"]
    assert sparsity.jacobian.columns[1][1] == program.transcription.layout.phases[0].times["tf"]
    assert sparsity.hessian.rows == sparsity.hessian.columns == sparsity.jacobian.columns


def test_phases_and_path_constraints_are_distinguished() -> None:
    first = goddard()
    second = replace(first.phases[0], name="again", path={"low": Constraint(lambda v: v["v"])})
    names = [n for n, _ in Program(TrajectoryProblem([first.phases[0], second], lambda e: 0.0)).sparsity.jacobian.rows]

    assert names == ["motion: rates", "again: rates", "again: path low"]


def test_arrays_give_it_back_and_are_small() -> None:
    sparsity = Program(fastest(goddard().phases[0]), Options(intervals=500)).sparsity
    arrays = sparsity_arrays(sparsity)
    restored = sparsity_from(arrays)

    assert restored is not None
    for name in ("jacobian", "hessian"):
        one, restored_map = getattr(sparsity, name), getattr(restored, name)
        assert (one.counts == restored_map.counts).all()
        assert (one.shape, one.nonzeros, one.rows, one.columns) == (
            restored_map.shape,
            restored_map.nonzeros,
            restored_map.rows,
            restored_map.columns,
        )
    assert sum(array.nbytes for array in arrays.values()) < 20_000
    assert sparsity_from({}) is None
