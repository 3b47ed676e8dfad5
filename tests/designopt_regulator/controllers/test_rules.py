"""Settings by rule, against their papers, and as baselines of a study."""

import pytest
from command import designopt
from designopt_regulator.controllers.rules import RULES, settings_by_rules

LAG = {"gain": 1.0, "time_constant": 2.9, "delay": 1.42}
INTEGRATOR = {"gain": 1.0, "delay": 1.0}


@pytest.mark.parametrize(
    ("rule", "plant", "pid", "expected"),
    [
        # Skogestad (2003), table 4: k = 1; fopdt with theta = 1, tau = 8; integrator with theta = 1
        ("simc", {"gain": 1.0, "time_constant": 8.0, "delay": 1.0}, False, {"kp": 4.0, "ti": 8.0}),
        ("simc", INTEGRATOR, False, {"kp": 0.5, "ti": 8.0}),
        # Series form 0.5 / 4 / 0.5 of g = e^-s / ((4 s + 1) (0.5 s + 1)) with tau_c = 1: Kc = 2
        ("simc", {"gain": 1.0, "time_constant": 0.5, "time_constant_2": 4.0, "delay": 1.0}, True,
         {"kp": 2.25, "ti": 4.5, "td": 0.5 / 1.125}),
        # Åström & Hägglund (2004): 1/(s+1)^4 is T = 2.9 s, L = 1.42 s
        ("amigo", LAG, False, {"kp": 0.414, "ti": 2.66}),
        ("amigo", LAG, True, {"kp": 1.12, "ti": 2.40, "td": 0.619}),
        ("amigo", INTEGRATOR, False, {"kp": 0.35, "ti": 13.4}),
        ("ziegler_nichols", {"gain": 2.0, "time_constant": 10.0, "delay": 1.0}, True, {"kp": 6.0, "ti": 2.0}),
        ("ziegler_nichols", INTEGRATOR, False, {"kp": 0.9, "ti": 3.333}),
        ("lambda", LAG, False, {"kp": 2.9 / 4.32, "ti": 2.9}),
        ("lambda", INTEGRATOR, False, {"kp": 7.0 / 16.0, "ti": 7.0}),
    ],
)  # fmt: skip
def test_a_rule_gives_the_settings_of_its_paper(rule, plant, pid, expected) -> None:
    settings = settings_by_rules(plant, pid=pid)[rule]
    assert {name: settings[name] for name in expected} == pytest.approx(expected, rel=3e-3)


def test_a_filter_without_a_derivative_lies_in_a_logarithmic_range() -> None:
    plant = {"gain": 1.0, "time_constant": 10.0, "delay": 1.0}
    assert settings_by_rules(plant, pid=True)["simc"]["td"] == 0.0
    assert settings_by_rules(plant, pid=True)["simc"]["tf"] == pytest.approx(0.1 * 8.0)


def test_without_delay_there_is_no_rule() -> None:
    assert settings_by_rules({"gain": 1.0, "time_constant": 1.0, "delay": 0.0}, pid=False) == {}


STUDY = """\
study: rules
model: {use: linear_loop, plant: {type: fopdt, gain: 1, time_constant: 8 s, delay: 1 s}}
space: {kp: [0.1, 10], ti: {low: 20, high: 20000, unit: ms}}
baseline: [{rule: simc}, {rule: amigo, name: by_hand, ti: 9 s}]
objectives: [{minimize: iae_load}]
constraints: [{of: ms, max: 2}]
solver: {use: sobol, samples: 4}
execution: {executor: serial}
"""


def test_a_study_names_rules_as_baselines(tmp_path) -> None:
    from designopt import load

    (tmp_path / "rules.yaml").write_text(STUDY)
    study = load(tmp_path / "rules.yaml")
    simc, by_hand = study.definition.baseline.solver.settings["designs"]
    assert simc == {"name": "simc", "kp": 4.0, "ti": pytest.approx(8000.0)}
    assert (by_hand["name"], by_hand["ti"]) == ("by_hand", 9000.0)
    assert study.run(tmp_path / "s").baseline.keys() == {"simc", "by_hand"}


def test_a_direct_acting_controller_has_the_rules_for_the_size_of_the_gain(tmp_path) -> None:
    from designopt import load

    (tmp_path / "rules.yaml").write_text(STUDY.replace("gain: 1", "gain: -1"))
    simc, _ = load(tmp_path / "rules.yaml").definition.baseline.solver.settings["designs"]
    assert simc == {"name": "simc", "kp": 4.0, "ti": pytest.approx(8000.0)}


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("rule: simc", "rule: smic", "there is no rule 'smic'; known rules: " + ", ".join(RULES)),
        ("{rule: simc}", "{rul: simc}", "'rul' is not in space; did you mean 'rule'?\n"),
        ("delay: 1 s", "delay: 0 s", "the model 'linear_loop' has no rules for these settings"),
        (
            "kp: [0.1, 10]",
            "kp: [0.1, 10], td: {low: 1 s, high: 9 s, scale: log}, tf: 1 s",
            "the rule gives td = 0, outside 1 to 9 s: a logarithmic range cannot hold it, use a linear one from 0",
        ),
        ("kp: [0.1, 10]", "kp: [0.1, 3]", "baseline.0.rule: the rule gives kp = 4, outside 0.1 to 3: widen the range"),
    ],
)
def test_an_unknown_rule_is_reported_with_those_that_there_are(tmp_path, before, after, message) -> None:
    (tmp_path / "rules.yaml").write_text(STUDY.replace(before, after))
    process = designopt(tmp_path, "validate", "rules.yaml")
    assert process.returncode == 2
    assert message in process.stdout + process.stderr


def test_rules_of_a_model_with_a_mistake_are_no_mistakes_of_their_own(tmp_path) -> None:
    (tmp_path / "rules.yaml").write_text(STUDY.replace("type: fopdt", "type: fopdtt"))
    process = designopt(tmp_path, "validate", "rules.yaml")
    assert "fopdtt" in process.stderr + process.stdout
    assert "baseline" not in process.stderr + process.stdout
