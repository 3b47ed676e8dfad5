"""Agreement of vectors: the ellipsoid holds what it says, the thesis's one does not."""

import numpy as np
import pytest
from designopt_wholebody.trial.agreement import agreement


@pytest.mark.parametrize(
    ("kind", "level", "coverage"),
    [("chi_squared", 0.95, 0.95), ("chi_squared", 0.9, 0.9), ("thesis", 0.95, 0.721), ("thesis", 0.9, 0.561)],
)
def test_the_coverage_of_normal_differences(kind: str, level: float, coverage: float) -> None:
    rng = np.random.default_rng(1)
    second = rng.normal(size=(40_000, 3))
    first = second + rng.normal(size=second.shape) * [1.0, 0.2, 3.0] + [0.5, 0.0, -1.0]
    limits = agreement(first, second, level=level, kind=kind)  # type: ignore[arg-type]
    assert limits.coverage == pytest.approx(coverage, abs=0.01)
    assert np.allclose(limits.axis_coverage, level, atol=0.01)
    assert np.allclose(limits.bias, [0.5, 0.0, -1.0], atol=0.05)


def test_correlated_differences_have_a_turned_ellipsoid() -> None:
    rng = np.random.default_rng(2)
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    d = rng.normal(size=(40_000, 3)) * [0.1, 1.0, 4.0] @ turn.T
    limits = agreement(d, np.zeros_like(d))
    assert limits.coverage == pytest.approx(0.95, abs=0.01)
    assert np.allclose(limits.radii, 2.796 * np.array([0.1, 1.0, 4.0]), rtol=0.02)  # sqrt of chi-squared, 3 dimensions
    assert np.allclose(np.abs(np.einsum("ij,ij->j", limits.axes, turn)), 1.0, atol=1e-3)


def test_missing_frames_are_left_out_and_too_few_are_refused() -> None:
    d = np.random.default_rng(3).normal(size=(20, 3))
    gaps = d.copy()
    gaps[[3, 7], 1] = np.nan
    limits = agreement(gaps, np.zeros_like(d))
    assert limits.count == 18
    assert np.allclose(limits.bias, np.delete(d, [3, 7], axis=0).mean(axis=0))
    with pytest.raises(ValueError, match="3 differences are too few"):
        agreement(d[:3], d[:3])
    with pytest.raises(ValueError, match="shape"):
        agreement(d[:, :2], d[:, :2])
    with pytest.raises(ValueError, match="between 0 and 1, not 1"):
        agreement(d, d, level=1.0)
    with pytest.raises(ValueError, match="there is no ellipsoid"):
        agreement(d, d, kind="box")  # type: ignore[arg-type]
