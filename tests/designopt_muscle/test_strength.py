"""Forces of muscles on rigid tendons are those of OpenSim; elastic tendons are in equilibrium with their fibres."""

import csv
from dataclasses import replace

import numpy as np
import pytest
from designopt_muscle.curves import OPENSIM
from designopt_muscle.geometry.geometry import muscle_geometry
from designopt_muscle.osim.read import read_model
from designopt_muscle.strength import strengths
from opensim_cases import table
from small_models import hinge


@pytest.mark.parametrize(("name", "file"), [("arm26", "arm26"), ("gait2392", "gait2392_subject01")])
def test_active_forces_of_thelen_muscles_are_those_of_opensim(opensim, name, file):
    """At the lengths and speeds of the reference: 1e-7 F_o (specs/muscle_force_sharing.md section 7)."""
    model = read_model((opensim / "models" / f"{file}.osim").read_bytes())
    with (opensim / "reference" / f"{name}_pose_geometry.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    names = [m.name for m in model.muscles]
    shape = (1 + max(int(r["pose"]) for r in rows), len(names))
    lengths, speeds, reference = (np.full(shape, np.nan) for _ in range(3))
    for row in rows:
        entry = int(row["pose"]), names.index(row["muscle"])
        lengths[entry], speeds[entry] = float(row["length_m"]), float(row["lengthening_speed_m_per_s"])
        reference[entry] = float(row["max_active_force_along_tendon_N"])
    forces, _ = strengths(model.muscles, lengths, speeds)
    assert np.abs(forces.strength / forces.isometric - reference / forces.isometric).max() <= 1e-7


@pytest.mark.parametrize(("name", "file"), [("gait2392", "gait2392_subject01")])
def test_strengths_over_walking_are_those_of_opensim_from_model_and_motion_alone(opensim, name, file):
    model = read_model((opensim / "models" / f"{file}.osim").read_bytes())
    lines = (opensim / "motion" / f"{name}_kinematics.sto").read_text().partition("endheader")[2].split("\n")[1:]
    numbers = np.array([[float(v) for v in line.split()] for line in lines[1:] if line.strip()])
    columns = dict(zip(lines[0].split(), numbers.T, strict=True))
    names, reference = table(opensim / "reference" / f"{name}_max_active_force.csv")
    labels, moving = table(opensim / "reference" / f"{name}_lengthening_speeds.csv")
    assert names == labels
    frames = np.searchsorted(columns["time"], reference[:, 0] - 1e-9)
    geometry = muscle_geometry(model, {n: columns[n][frames] for n in model.free if n in columns})
    forces, fibres = strengths(model.muscles, geometry.lengths, moving[:, 1:])
    assert tuple(names[1:]) == forces.names
    assert np.abs(forces.strength - reference[:, 1:]).max() <= 1e-6 * forces.isometric.max()
    assert len(fibres.outside()) < 10


def one(model="degroote", **shape):
    muscle = read_model(hinge()).muscles[0]
    return replace(muscle, model=model, pennation=0.3, shape={**muscle.shape, **shape})


def test_an_elastic_tendon_and_its_fibre_pull_alike():
    muscle = one(tendon_strain_at_one_norm_force=0.08, passive_fiber_strain_at_one_norm_force=0.6)
    lengths = np.linspace(0.26, 0.42, 30)[:, None]
    forces, fibres = strengths((muscle,), lengths, np.full((30, 1), 9.9), tendon="equilibrium", passive=True)
    pulled = forces.strength[:, 0] + forces.passive[:, 0]
    tendon = muscle.force * OPENSIM.tendon_force(1.0 + fibres.strain[:, 0], strain=0.08)
    taut = fibres.strain[:, 0] > 1e-9
    assert taut.sum() > 20
    assert tendon[taut] == pytest.approx(pulled[taut], rel=1e-9)
    stiff, _ = strengths((replace(muscle, shape={**muscle.shape, "tendon_strain_at_one_norm_force": 1e-5}),),
                         lengths, np.zeros((30, 1)), tendon="equilibrium")  # fmt: skip
    rigid, _ = strengths((muscle,), lengths, np.zeros((30, 1)))
    assert stiff.strength == pytest.approx(rigid.strength, abs=0.02)


def test_passive_forces_are_left_out_unless_asked_for():
    lengths, still = np.array([[0.42]]), np.zeros((1, 1))
    assert strengths((one(),), lengths, still)[0].passive.tolist() == [[0.0]]
    assert strengths((one(),), lengths, still, passive=True)[0].passive[0, 0] > 50.0
    assert strengths((one("thelen"),), lengths, still, passive=True)[0].passive[0, 0] > 50.0


def test_fibres_outside_of_the_curves_are_named():
    _, fibres = strengths((one(),), np.array([[0.6], [0.3]]), np.array([[0.0], [3.0]]))
    assert fibres.outside() == [
        "flexor: fibre from 0.729 to 2.68 optimal lengths",
        "flexor: fibre speed up to 1.83 times the maximum",
    ]


def test_a_fibre_that_no_tendon_force_balances_is_named():
    """At 0.6 m the passive fibre pulls with more than five isometric forces of any tendon in the curves' range."""
    lengths = np.array([[0.35], [0.6]])
    _, near = strengths((one(),), lengths[:1], np.zeros((1, 1)), tendon="equilibrium")
    _, far = strengths((one(),), lengths, np.zeros((2, 1)), tendon="equilibrium")
    assert near.overloaded_muscles == ()
    assert far.overloaded_muscles == ("flexor",)
    assert "flexor: fibre and tendon have no equilibrium up to 5 maximum isometric forces" in far.outside()


def test_a_slack_muscle_has_no_force():
    forces, _ = strengths((one(),), np.array([[0.15]]), np.zeros((1, 1)), passive=True)
    assert forces.strength.tolist() == [[0.0]]
    assert forces.passive.tolist() == [[0.0]]
