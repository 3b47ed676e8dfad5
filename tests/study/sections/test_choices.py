"""Rules of choice with a reference point and with limits: read with units, every mistake at its place."""

import pytest

from designopt.study.language.errors import StudyError
from designopt.study.load import study_from_text
from designopt.study.study import Choice

STUDY = """\
study: chosen
model: {use: four_bar_knee}
space:
  stiffness: {low: 12, high: 30, unit: kN/m}
  damping_ratio: 0.05
objectives:
  - {name: mismatch, minimize: 1 - rho}
  - {name: flexion, minimize: abs(peak_error), unit: deg}
solver: {use: full_factorial, levels: 3}
report:
  choose:
    - weighted_tchebycheff
    - weighted_tchebycheff: {weights: {flexion: 2}, reference: {flexion: 0.05 rad}}
    - epsilon_constraint: {of: mismatch, within: {flexion: 3 deg}}
"""


def test_reference_and_limits_are_in_the_units_of_the_objectives() -> None:
    plain, aimed, limited = study_from_text(STUDY, "chosen.yaml").choose
    assert plain == Choice("weighted_tchebycheff")
    assert aimed.weights == {"flexion": 2.0}
    assert aimed.target["flexion"] == pytest.approx(2.8648, abs=1e-4)  # 0.05 rad in deg
    assert limited == Choice("epsilon_constraint", target={"flexion": 3.0}, objective="mismatch")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("of: mismatch", "of: mismtch", "did you mean 'mismatch'?"),
        ("within: {flexion: 3 deg}", "within: {flexon: 3}", "did you mean 'flexion'?"),
        ("within: {flexion: 3 deg}", "within: {flexion: 3 s}", "cannot be converted to 'deg'"),
        ("within: {flexion: 3 deg}", "within: {}", "at least one limit is needed"),
        ("within: {flexion: 3 deg}", "within: {mismatch: 0.1}", "limit the others"),
        ("epsilon_constraint: {of: mismatch, within: {flexion: 3 deg}}", "epsilon_constraint", "give the limits"),
        ("reference: {flexion: 0.05 rad}", "reference: {mismtch: 1}", "did you mean 'mismatch'?"),
        ("weights: {flexion: 2}", "weights: {flexion: -2}", "at least 0"),
    ],
)
def test_every_mistake_is_reported(old: str, new: str, message: str) -> None:
    with pytest.raises(StudyError) as caught:
        study_from_text(STUDY.replace(old, new), "chosen.yaml")
    assert any(message in issue.message for issue in caught.value.issues), [i.message for i in caught.value.issues]
