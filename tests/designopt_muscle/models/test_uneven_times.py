"""Motions whose times are not even: the same activations as the even original, or an error with file and row."""

import numpy as np
import pytest
from designopt_muscle.models.dynamic.sharing import DynamicSharingModel
from designopt_muscle.models.static_sharing import StaticSharing
from designopt_muscle.models.trial import bundled_file
from designopt_muscle.models.wire_sharing import WireSharingModel

from designopt.plugin import InputFile, Unusable

NAMES = frozenset({"time", "activations", "notes"})


def without_rows(file, row, count=1, name="short.csv"):
    """The file without some of its rows of numbers, from `row` on."""
    lines = file.content.decode().splitlines()
    first = next(i for i, line in enumerate(lines) if line and line[0].isdigit())
    return InputFile(name, "\n".join([*lines[: first + row], *lines[first + row + count :]]).encode())


def with_close_row(file):
    """The file with a row that is repeated 1 µs later, as by an integrator with variable steps."""
    lines = file.content.decode().splitlines()
    time, _, rest = lines[-20].partition(",")
    return InputFile("close.csv", "\n".join([*lines[:-19], f"{float(time) + 1e-6:.8f},{rest}", *lines[-19:]]).encode())


@pytest.mark.parametrize("row", [10, 40])
def test_a_motion_without_one_row_has_the_activations_of_the_whole_one(row):
    walk = bundled_file("walking_leg.csv")
    model = StaticSharing(cutoff=6.0, reserve=5.0)
    outputs, arrays = model.evaluate({}, {}, NAMES)
    short, result = model.evaluate({}, {"motion": without_rows(walk, row)}, NAMES)
    assert result["time"] == pytest.approx(arrays["time"], abs=1e-9)
    assert np.nanmax(np.abs(result["activations"] - arrays["activations"])) < 0.02
    assert short["peak_activation"] == pytest.approx(outputs["peak_activation"], abs=0.01)
    assert any("resampled every" in note for note in result["notes"])


def test_wires_follow_a_motion_without_one_row_as_the_whole_one():
    model = WireSharingModel(cutoff=6.0, reserve=5.0)
    outputs, _ = model.evaluate({}, {})
    short, _ = model.evaluate({}, {"motion": without_rows(bundled_file("wire_arm.csv"), 20)})
    assert short["peak_activation"] == pytest.approx(outputs["peak_activation"], abs=0.01)
    assert short["mean_cost"] == pytest.approx(outputs["mean_cost"], rel=0.01)


def test_rows_that_nearly_coincide_need_a_filter():
    walk, arm = with_close_row(bundled_file("walking_leg.csv")), with_close_row(bundled_file("wire_arm.csv"))
    with pytest.raises(Unusable, match=r"close\.csv: the times are too unevenly spaced for derivatives: row \d+"):
        StaticSharing(reserve=5.0).evaluate({}, {"motion": walk})
    with pytest.raises(Unusable, match=r"close\.csv: the times are too unevenly spaced"):
        WireSharingModel(reserve=5.0).evaluate({}, {"motion": arm})
    with pytest.raises(Unusable, match=r"close\.csv: the times are too unevenly spaced"):
        DynamicSharingModel().evaluate({}, {"motion": walk})
    outputs, _ = StaticSharing(reserve=5.0, cutoff=6.0).evaluate({}, {})
    close, _ = StaticSharing(reserve=5.0, cutoff=6.0).evaluate({}, {"motion": walk})
    assert close["mean_cost"] == pytest.approx(outputs["mean_cost"], rel=1e-3)


def test_repeated_times_are_refused_with_file_and_row():
    lines = bundled_file("walking_leg.csv").content.decode().splitlines()
    repeated = InputFile("twice.csv", "\n".join([*lines, lines[-1]]).encode())
    with pytest.raises(Unusable, match=rf"twice\.csv, line {len(lines) + 1}: the time .* is not later than"):
        StaticSharing().evaluate({}, {"motion": repeated})


def test_frames_in_a_gap_of_the_net_moments_have_no_answer():
    """A spline over 20 missing rows would invent them; the motion itself has its own file."""
    walk = bundled_file("walking_leg.csv")
    moments = without_rows(walk, 20, 20, "moments.csv")
    _, arrays = StaticSharing(reserve=5.0).evaluate({}, {"motion": walk, "moments": moments}, frozenset({"status"}))
    assert np.flatnonzero(arrays["status"] == 120).tolist() == list(range(20, 40))
    with pytest.raises(Unusable, match="has no net moment"):
        DynamicSharingModel().evaluate({}, {"motion": walk, "moments": moments})


def test_the_remarks_of_a_check_name_resampling_gaps_and_assumed_units():
    walk = bundled_file("walking_leg.csv")
    moments = without_rows(walk, 20, 20, "moments.csv")
    conditions = {"motion": without_rows(walk, 10), "moments": moments}
    for model in (StaticSharing(cutoff=6.0), DynamicSharingModel(cutoff=6.0)):
        remarks = " ".join(model.remarks(conditions))
        assert "short.csv: the times are not evenly spaced" in remarks
        assert "moments.csv: no rows between" in remarks
    remarks = " ".join(WireSharingModel(cutoff=6.0).remarks({"motion": without_rows(bundled_file("wire_arm.csv"), 20)}))
    assert "short.csv: the times are not evenly spaced" in remarks
