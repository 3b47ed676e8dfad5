"""Compliant tendons: states of single muscles against OpenSim 4.6, the stiff limit, squats and walks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from designopt_muscle.osim.read import read_model
from designopt_recordings.table import TimeTable
from designopt_walking.bundled import planar_walker, squat_leg
from designopt_walking.models.predict import WalkPredict
from designopt_walking.models.squat import ARRAYS, SquatToStand
from designopt_walking.models.track import WalkTrack
from designopt_walking.programs.gait import GaitError, check_mirror, program_options
from designopt_walking.programs.squat import Squat, rigid_start, squat_to_stand, squat_walker
from designopt_walking.programs.tendons import Tendons, with_tendon_forces
from designopt_walking.storage import guess_from_table
from designopt_walking.walker import Walker, walker_of

from designopt.collocation import Program, sampled
from designopt.plugin import InvalidSetting

#: Strains of soft Achilles tendons.
SOFT = {"soleus": 0.1, "gastroc": 0.1}
#: Coordinates and speeds of two random postures (rad, m, s).
POSTURES = [
    {
        "pelvis_tilt": (0.013, 2.383), "pelvis_tx": (0.776, -1.649), "pelvis_ty": (0.86, 2.241),
        "hip_flexion_l": (-0.194, 1.927), "hip_flexion_r": (0.677, -0.192), "knee_angle_l": (-0.523, -1.329),
        "knee_angle_r": (-0.559, -0.33), "ankle_angle_l": (0.053, 0.321), "ankle_angle_r": (0.347, 1.756),
        "lumbar": (0.187, 2.934),
    },
    {
        "pelvis_tilt": (0.189, 0.54), "pelvis_tx": (0.605, 0.828), "pelvis_ty": (0.935, -2.095),
        "hip_flexion_l": (0.284, -1.563), "hip_flexion_r": (0.243, -2.42), "knee_angle_l": (-0.024, -1.71),
        "knee_angle_r": (-0.246, -1.197), "ankle_angle_l": (0.274, 0.973), "ankle_angle_r": (-0.171, 2.07),
        "lumbar": (0.283, 2.424),
    },
]  # fmt: skip
#: By posture and muscle: activation, normalised tendon force and its rate (1/s), then of OpenSim 4.6
#: (DeGrooteFregly2016Muscle in implicit mode, tendon_strain_at_one_norm_force of `SOFT`): getFiberLength,
#: getFiberVelocity, getTendonLength, getFiberForce, getActiveFiberForce, getImplicitResidualNormalizedTendonForce and
#: getTendonPotentialEnergy (the integral of its tendon curve).
OPENSIM = {
    (0, "soleus_r"): (
        (0.233, 0.186, 1.35),
        (0.04906315832035681, 0.013455121328727093, 0.2496913027210072, 1384.0979833028048, 1276.6490973140099,
         -0.059148228513146245, 3.7631029388029416),
    ),
    (0, "vasti_l"): (
        (0.446, 0.83, 1.551),
        (0.08132249325439359, 0.04051611848062524, 0.12200221044196441, 1922.0332054765663, 1902.7071821589097,
         0.4465179816859089, 8.018421928099905),
    ),
    (1, "soleus_r"): (
        (0.534, 0.174, -3.69),
        (0.03146738124117548, 0.1716586040063031, 0.24926677538986475, 2213.54241463011, 2186.36623284818,
         -0.15457736260634025, 3.3706283686383505),
    ),
    (1, "gastroc_r"): (
        (0.839, 0.519, -3.833),
        (0.05540463229511729, 0.15138990044784256, 0.37253482476912614, 1299.4024134321123, 1291.1872847893662,
         0.05714799016977562, 12.763703534689933),
    ),
}  # fmt: skip


def compliant_walker(strains: Mapping[str, float] | None = None, rigid: list[str] | None = None) -> Walker:
    model, names = Tendons("compliant", rigid, strains or {}).applied_to(read_model(planar_walker().content))
    return walker_of(model, compliant=names)


@pytest.fixture(scope="module")
def walker() -> Walker:
    return compliant_walker(SOFT)


def test_fibres_tendons_and_their_equilibrium_are_those_of_opensim(walker: Walker) -> None:
    muscles, state = walker.muscles, walker.state
    names = ("fibre_length", "fibre_velocity", "tendon_strain", "fibre_force", "active_force", "tendon_energy")
    arguments = [state.z, state.dz, muscles.activation, muscles.tendon_force, muscles.force_rate]
    function = ca.Function("states", arguments, [muscles.equilibrium, *(getattr(muscles, n) for n in names)])
    for (posture, name), ((a, f, u), expected) in OPENSIM.items():
        z, dz = np.array([POSTURES[posture][c] for c in walker.coordinates]).T
        i, j = muscles.index(name), muscles.compliant.index(name)
        muscle, count = muscles.muscles[i], len(muscles.compliant)
        activation, force, rate = np.full(len(muscles.names), 0.1), np.full(count, 0.1), np.zeros(count)
        activation[i], force[j], rate[j] = a, f, u
        residual, *columns = (np.array(v).ravel() for v in function(z, dz, activation, force, rate))
        length, velocity, strain, fibre_force, active, energy = (column[i] for column in columns)
        values = (
            length * muscle.fibre, velocity, muscle.slack * (1.0 + strain), fibre_force, active, residual[j], energy
        )  # fmt: skip
        assert values == pytest.approx(expected, rel=1e-9)


def test_the_energy_of_a_tendon_changes_by_its_force_times_its_speed(walker: Walker) -> None:
    muscles = walker.muscles
    rate = ca.jacobian(muscles.tendon_energy, muscles.tendon_force) @ muscles.force_rate
    arguments = [walker.state.z, walker.state.dz, muscles.activation, muscles.tendon_force, muscles.force_rate]
    function = ca.Function("power", arguments, [rate, muscles.force * muscles.tendon_speed])
    rng = np.random.default_rng(2)
    by_energy, by_force = function(*(rng.uniform(0.1, 0.9, a.shape[0]) for a in arguments))
    assert np.abs(np.array(by_force)).max() > 1.0
    np.testing.assert_allclose(np.array(by_energy), np.array(by_force), rtol=1e-12, atol=1e-12)


def test_tendons_shorter_than_the_fibre_stay_rigid_by_default() -> None:
    stretched = {n.removesuffix("_r") for n in compliant_walker().muscles.compliant if n.endswith("_r")}
    assert stretched == {"hamstrings", "iliopsoas", "rect_fem", "vasti", "gastroc", "soleus", "tib_ant"}
    assert len(compliant_walker(rigid=[]).muscles.compliant) == 18
    assert "soleus_r" not in compliant_walker(rigid=["soleus"]).muscles.compliant
    one_sided = compliant_walker(rigid=["soleus_r"])
    assert "soleus_l" in one_sided.muscles.compliant
    with pytest.raises(GaitError, match="'soleus_r' and 'soleus_l' have different numbers"):
        check_mirror(one_sided)


@pytest.mark.parametrize(
    ("settings", "field", "message"),
    [
        ({"rigid_tendons": ["soleos"]}, "rigid_tendons", "'soleos' is no muscle; the model has hamstrings, bifemsh"),
        ({"tendon_strains": {"calf": 0.1}}, "tendon_strains", "'calf' is no muscle"),
        ({"tendon_strains": {"soleus": 4.9}}, "tendon_strains", "'soleus_r' has the strain 4.9 .* 0.002 to 0.3"),
        ({"tendon_strains": {"soleus": -0.1}}, "tendon_strains", "has the strain -0.1"),
        ({"tendons": "rigid", "rigid_tendons": []}, "rigid_tendons", "all tendons are rigid; set 'tendons: compliant'"),
        ({"tendons": "rigid", "tendon_strains": {"soleus": 0.1}}, "tendon_strains", "all tendons are rigid"),
    ],
)
@pytest.mark.parametrize("model", [WalkPredict, WalkTrack])
def test_impossible_tendons_are_errors_of_their_settings(model, settings, field: str, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InvalidSetting, match=message) as error:
        model(**{"tendons": "compliant", **settings}).check()
    assert error.value.name == field


def test_a_squat_by_torques_has_no_tendons() -> None:
    with pytest.raises(InvalidSetting, match="torques have no tendons; set 'drive: muscles'"):
        SquatToStand(tendons="compliant").check()
    with pytest.raises(InvalidSetting, match="'calf' is no muscle"):
        SquatToStand(drive="muscles", tendons="compliant", rigid_tendons=["calf"]).check()


def cost_of_squat(strain: float | None) -> float:
    """The least effort of a squat whose tendons all have this strain, or are rigid. Tendons may push: rigid ones
    transmit the damping of a fibre that shortens at rest, too."""
    model = read_model(squat_leg().content)
    strains = {} if strain is None else {m.name: strain for m in model.muscles}
    tendons = Tendons() if strain is None else Tendons("compliant", [], strains)
    squat = Squat(drive="muscles", tendons=tendons)
    walker, _ = squat_walker(model, squat)
    problem = squat_to_stand(walker, squat, rigid_start(model, squat, 15))
    (phase,) = problem.phases
    pushing = {f"tendon_force_{name}": (-0.15, 5.0) for name in walker.muscles.compliant}
    problem = replace(problem, phases=[replace(phase, bounds=pushing)], parameters={"knee_stiffness": 0.0})
    solution = Program(problem, program_options(15, 1e-6)).solve()
    assert solution.success
    return solution.objective


def test_stiff_tendons_approach_rigid_ones_with_the_first_order_of_their_strain() -> None:
    rigid = cost_of_squat(None)
    differences = [rigid - cost_of_squat(strain) for strain in (0.01, 0.005, 0.0025)]
    assert differences[0] < 0.03 * rigid
    ratios = [differences[i] / differences[i + 1] for i in (0, 1)]
    assert ratios == pytest.approx([2.0, 2.0], abs=0.2)
    assert ratios[0] < ratios[1]


def test_a_squat_on_compliant_tendons_stores_energy_and_begins_at_rest() -> None:
    settings = {"drive": "muscles", "intervals": 10}
    stretched = SquatToStand(**settings, tendons="compliant", rigid_tendons=["soleus", "bifemsh", "glut_max2", "psoas"])  # type: ignore[arg-type]
    outputs, arrays = stretched.evaluate({}, {}, set(ARRAYS))
    rigid, on_rigid = SquatToStand(**settings).evaluate({}, {}, {"tendon_strains", "fibre_lengths"})  # type: ignore[arg-type]
    assert outputs["effort"] < 0.99 * rigid["effort"]
    assert outputs["peak_tendon_energy"] > 5.0  # type: ignore[typeddict-item]
    assert outputs["peak_tendon_strain"] == pytest.approx(arrays["tendon_strains"].max(), rel=1e-2)  # type: ignore[typeddict-item]
    assert "peak_tendon_energy" not in rigid
    assert not on_rigid["tendon_strains"].any()
    soleus = arrays["controls"].tolist().index("soleus_r")
    assert not arrays["tendon_strains"][:, soleus].any()
    quadriceps = arrays["controls"].tolist().index("vas_int_r")
    strain = arrays["tendon_strains"][:, quadriceps]
    assert strain.max() > 0.02
    assert abs(strain[1] - strain[0]) < 0.1 * np.abs(np.diff(strain)).max()


def test_trajectories_on_rigid_tendons_get_the_forces_that_these_would_have(walker: Walker) -> None:
    time = np.linspace(0.0, 0.5, 5)
    values = {name: np.zeros(5) for name in walker.coordinates} | {
        f"{n}_speed": np.zeros(5) for n in walker.coordinates
    }
    values |= {f"activation_{name}": np.linspace(0.2, 0.4, 5) for name in walker.muscles.names}
    guess = with_tendon_forces(walker, sampled(time, values))
    at_nodes = guess.at(np.linspace(0.0, 1.0, 5))
    rigid = walker_of(walker.model)
    function = ca.Function("f", [rigid.state.z, rigid.state.dz, rigid.muscles.activation], [rigid.muscles.force])
    force = float(function(0, 0, 0.4)[rigid.muscles.index("soleus_r")])
    assert at_nodes["tendon_force_soleus_r"][-1] == pytest.approx(force / 5137.0, rel=1e-12)
    assert with_tendon_forces(walker, guess) is guess
    some_known = sampled(time, {**values, f"tendon_force_{walker.muscles.compliant[0]}": np.full(5, 0.3)})
    completed = with_tendon_forces(walker, some_known).at(np.ones(1))
    assert completed[f"tendon_force_{walker.muscles.compliant[0]}"] == pytest.approx(0.3)
    assert completed["tendon_force_soleus_r"] == pytest.approx(force / 5137.0, rel=1e-12)
    plain = sampled(time, values)
    assert with_tendon_forces(rigid, plain) is plain


def test_a_guess_has_the_tendon_forces_of_a_trajectory_of_opensim(walker: Walker) -> None:
    time, forces = np.linspace(0.0, 0.5, 7), [f"/{name}/normalized_tendon_force" for name in walker.muscles.compliant]
    columns = {name: np.linspace(0.0, 0.1, 7) for name in walker.coordinates}
    columns |= {label: np.linspace(0.1, 0.3, 7) for label in forces}
    guess = guess_from_table(walker, TimeTable(time, tuple(columns), np.column_stack(list(columns.values()))))
    for name, label in zip(walker.muscles.compliant, forces, strict=True):
        np.testing.assert_allclose(guess.values[f"tendon_force_{name}"], columns[label])


@pytest.mark.slow
def test_a_predicted_walk_on_compliant_tendons_balances_with_the_energy_that_they_store() -> None:
    """Half of the muscles' tendons stretch; tendons take up and return the same energy over a cycle."""
    walk = WalkPredict(tendons="compliant", intervals=12)
    outputs, arrays = walk.evaluate({}, {"speed": 1.2}, {"tendon_strains", "fibre_speeds", "muscles", "forces"})
    rigid, _ = WalkPredict(intervals=12).evaluate({}, {"speed": 1.2})
    assert outputs["energy_error"] < 0.03
    assert outputs["mean_force_error"] < 1e-3
    assert outputs["objective"] == pytest.approx(rigid["objective"], rel=0.03)
    assert outputs["tendon_work"] > 5.0  # type: ignore[typeddict-item]
    soleus = arrays["muscles"].tolist().index("soleus_r")
    assert arrays["tendon_strains"][:, soleus].max() > 0.01
    np.testing.assert_allclose(arrays["tendon_strains"][0], arrays["tendon_strains"][-1], atol=1e-9)
