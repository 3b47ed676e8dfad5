"""Terms of static sharing that a study file can give: computed moments, EMG, synergies, joint reactions, rate limit."""

from dataclasses import replace

import numpy as np
import pytest
from designopt_mechanics.moment_balance import MomentBalance
from designopt_mechanics.sharing.muscles import Muscles
from designopt_mechanics.sharing.statement.criteria import MinMax, Power, SoftSaturation
from designopt_mechanics.sharing.statement.formulation import Terms
from designopt_mechanics.sharing.static import coupled as coupled_frames
from designopt_mechanics.sharing.static.derivatives import activation_slopes
from designopt_mechanics.sharing.static.share import share
from designopt_muscle.models.emg import MeasuredActivity, read_activity
from designopt_muscle.models.errors import TrialError
from designopt_muscle.models.reactions import ReactionTerm
from designopt_muscle.models.static_sharing import StaticSharing
from designopt_muscle.models.trial import ExternalLoads, TrialDynamics, TrialFrames, bundled_file, read_trial
from opensim_cases import case
from small_models import hinge

from designopt.plugin import InputFile, InvalidDesign, InvalidSetting

ALL = frozenset(
    {"time", "muscles", "coordinates", "activations", "status", "signals", "reactions", "joints", "net_moments"}
)


def file(folder, name):
    return InputFile(name, (folder / name).read_bytes())


def csv(names, columns):
    rows = [",".join(names), *(",".join(f"{v:.12g}" for v in row) for row in np.column_stack(columns))]
    return InputFile("given.csv", ("\n".join(rows) + "\n").encode())


# --------------------------------------------------------------------------------------------------- computed moments


def test_net_moments_of_a_swinging_arm_are_those_of_a_pendulum():
    """Inertia about the pin 0.01 + 1 x 0.2^2 kg m^2, weight 9.81 N at 0.2 m (small_models.hinge)."""
    t = np.linspace(0.0, 1.0, 101)
    angle, second = 0.3 + 0.2 * np.sin(3.0 * t), -1.8 * np.sin(3.0 * t)
    model = StaticSharing(model=InputFile("hinge.osim", hinge()), inverse_dynamics="compute", reserve=50.0)
    model.check()
    _, arrays = model.evaluate({}, {"motion": csv(["time", "flexion"], [t, angle])}, ALL)
    expected = 0.05 * second + 9.81 * 0.2 * np.cos(angle)
    assert arrays["net_moments"][10:-10, 0] == pytest.approx(expected[10:-10], abs=1e-7)


def test_computed_moments_of_walking_are_shared_as_those_of_the_table(opensim):
    """gait10dof18musc: masses, motion and ground reactions against OpenSim's inverse dynamics, frames off the ends."""
    walking = {
        "motion": file(opensim, "motion/gait10dof18musc_kinematics.sto"),
        "external_loads": file(opensim, "motion/gait10dof18musc_walk_grf.xml"),
        "external_forces": file(opensim, "motion/subject01_walk_grf.mot"),
    }
    settings = {"model": file(opensim, "models/gait10dof18musc_subject01.osim"), "window": (0.6, 1.9), "reserve": 1.0}
    _, computed = StaticSharing(**settings, inverse_dynamics="compute").evaluate({}, walking, ALL)
    table = {
        "motion": walking["motion"],
        "moments": file(opensim, "reference/gait10dof18musc_inverse_dynamics.csv"),
    }
    _, read = StaticSharing(**settings).evaluate({}, table, ALL)
    inner = slice(6, -6)
    crossed = [list(computed["coordinates"]).index(name) for name in read["coordinates"]]
    difference = computed["net_moments"][inner][:, crossed] - read["net_moments"][inner]
    assert np.abs(difference).max() <= 1e-2
    assert np.abs(computed["activations"] - read["activations"])[inner].max() <= 1e-4


# ------------------------------------------------------------------------------------------------------ joint reactions


def test_joint_reactions_of_walking_are_those_of_opensim(opensim):
    """OpenSim 4.6, calcReactionOnChildExpressedInGround of hip, knee and ankle with the same muscle forces and motion.

    The numbers were computed once with the forces that this study finds at 0.8 and 1.2 s; the moments left over by the
    muscles were given to drives of the coordinates. Ground axes, child axes, parent axes.
    """
    expected = {
        20: [
            [387.91119330896, -1408.78970992673, 154.59847827497],
            [876.21800486319, -2439.25326326285, -60.27656624454],
            [90.78548922635, -928.82960851746, 44.40881015998],
        ],
        60: [
            [-958.04310639018, -1797.16792798863, 184.92421082918],
            [47.82544331272, -3368.31590110881, 245.95875924534],
            [-47.71416911701, -3380.86936793963, 170.00190899744],
        ],
    }
    model = StaticSharing(
        model=file(opensim, "models/gait10dof18musc_subject01.osim"),
        window=(0.6, 1.9),
        reserve=1.0,
        inverse_dynamics="compute",
        joint_reactions=[
            ReactionTerm("hip_r", axes="ground"),
            ReactionTerm("knee_r", axes="child"),
            ReactionTerm("ankle_r", axes="parent"),
        ],
    )
    walking = {
        "motion": file(opensim, "motion/gait10dof18musc_kinematics.sto"),
        "external_loads": file(opensim, "motion/gait10dof18musc_walk_grf.xml"),
        "external_forces": file(opensim, "motion/subject01_walk_grf.mot"),
    }
    outputs, arrays = model.evaluate({}, walking, ALL)
    assert arrays["time"][[20, 60]] == pytest.approx([0.8, 1.2], abs=1e-9)
    for frame, forces in expected.items():
        assert arrays["reactions"][frame] == pytest.approx(np.array(forces), rel=1e-6, abs=1e-3)
    norms = np.linalg.norm(arrays["reactions"], axis=2)
    assert outputs["peak_reaction"] == pytest.approx(np.nanmax(norms))


def lifting(**settings):
    """The hinge of the tests with the weight of its arm, and the reaction in its pin."""
    t = np.linspace(0.0, 1.0, 41)
    model = StaticSharing(model=InputFile("hinge.osim", hinge()), inverse_dynamics="compute", reserve=5.0, **settings)
    model.check()
    return model.evaluate({}, {"motion": csv(["time", "flexion"], [t, 0.2 + 0.1 * np.sin(2 * t)])}, ALL)


def test_a_reaction_in_the_cost_or_with_a_maximum_is_smaller():
    named, free = lifting(joint_reactions=[ReactionTerm("elbow")])
    peak = named["peak_reaction"]
    costly, _ = lifting(joint_reactions=[ReactionTerm("elbow", weight=1e-3)])
    limited, arrays = lifting(joint_reactions=[ReactionTerm("elbow", maximum=0.9 * peak)])
    assert costly["peak_reaction"] < 0.95 * peak
    assert limited["peak_reaction"] == pytest.approx(0.9 * peak, rel=1e-6)
    assert limited["peak_reserve"] > named["peak_reserve"]
    assert (arrays["status"] < 100).all()
    # along an axis
    y = np.abs(free["reactions"][:, 0, 1]).max()
    _, arrays = lifting(joint_reactions=[ReactionTerm("elbow", component="y", maximum=0.9 * y)])
    assert np.abs(arrays["reactions"][:, 0, 1]).max() == pytest.approx(0.9 * y, rel=1e-6)


# ------------------------------------------------------------------------------------------------------------------ EMG


def leg(activity=None, settings=None, **scenario):
    model = StaticSharing(emg=activity, **(settings or {}))
    model.check()
    return model.evaluate({}, scenario, ALL)


@pytest.fixture(scope="module")
def plain():
    return leg()


def muscle(arrays, name):
    return list(arrays["muscles"]).index(name)


def test_activations_follow_measured_activity_the_more_the_more_it_weighs(plain):
    _, free = plain
    names = list(free["muscles"])
    tracked = [n for n in names if "sol" in n.lower() or "gas" in n.lower()][:2]
    assert len(tracked) == 2
    envelopes = [np.clip(free["activations"][:, names.index(n)] + 0.1, 0.0, 1.0) for n in tracked]
    recorded = csv(["time", "EMG one", "EMG two"], [free["time"], *envelopes])
    last = np.inf
    for weight in (0.1, 1.0, 10.0):
        activity = MeasuredActivity(track=dict(zip(tracked, ["EMG one", "EMG two"], strict=True)), weight=weight)
        outputs, arrays = leg(activity, emg=recorded)
        columns = [names.index(n) for n in tracked]
        away = np.sqrt(np.mean((arrays["activations"][:, columns] - np.column_stack(envelopes)) ** 2))
        assert away < last
        last = away
        assert arrays["signals"][:, columns] == pytest.approx(np.column_stack(envelopes), abs=1e-9)
        assert np.isnan(np.delete(arrays["signals"], columns, axis=1)).all()
    assert outputs["infeasible_frames"] == 0.0


def test_a_band_keeps_activations_near_the_signal_and_says_where_it_is_empty(plain):
    _, free = plain
    name = str(free["muscles"][0])
    signal = np.clip(free["activations"][:, 0] + 0.05, 0.0, 1.0)
    signal[30] = 1.4  # no activation is within 0.1 of it
    activity = MeasuredActivity(track={name: "EMG"}, weight=0.0, band=(-0.1, 0.02))
    _, arrays = leg(activity, {"reserve": 100.0}, emg=csv(["time", "EMG"], [free["time"], signal]))
    good = arrays["status"] < 100
    assert arrays["status"][30] == 110
    assert good.sum() == len(signal) - 1
    away = arrays["activations"][good, 0] - signal[good]
    assert away.min() >= -0.1 - 1e-9
    assert away.max() <= 0.02 + 1e-9


def test_a_free_scale_finds_the_factor_of_a_badly_normalised_signal(plain):
    _, free = plain
    name = str(free["muscles"][0])
    signal = np.clip(0.5 * free["activations"][:, 0], 0.0, 1.0)
    activity = MeasuredActivity(track={name: "EMG"}, weight=5.0, scale="free")
    _, arrays = leg(activity, emg=csv(["time", "EMG"], [free["time"], signal]))
    assert arrays["signals"][:, 0] == pytest.approx(2.0 * signal, rel=1e-3, abs=1e-4)
    assert arrays["activations"] == pytest.approx(free["activations"], abs=1e-3)


def test_raw_signals_become_envelopes_and_a_delay_shifts_them():
    t = np.arange(0.0, 3.0, 0.001)
    burst = ((t > 1.0) & (t < 1.5)) * np.random.default_rng(1).standard_normal(len(t))
    activity = MeasuredActivity(track={"a": "RAW"}, signal="raw")
    frames = np.arange(0.5, 2.5, 0.01)
    signals = read_activity(csv(["time", "RAW"], [t, burst]), activity, ("a", "b"), frames)
    assert np.isnan(signals[:, 1]).all()
    inside = (frames > 1.15) & (frames < 1.35)
    assert signals[inside, 0].mean() > 0.7
    assert signals[(frames < 0.7) | (frames > 1.8), 0].max() < 0.05
    late = read_activity(csv(["time", "RAW"], [t, burst]), replace(activity, delay=0.1), ("a", "b"), frames)
    assert late[10:, 0] == pytest.approx(signals[:-10, 0], abs=1e-6)


@pytest.mark.parametrize(
    ("activity", "names", "values", "message"),
    [
        (MeasuredActivity(track={"a": "GASTROC"}), ["time", "GASTRO"], 0.5, "GASTRO"),
        (MeasuredActivity(track={"a": "E"}), ["time", "E"], 40.0, "set 'signal: raw'"),
        (MeasuredActivity(track={"a": "E"}), ["time", "E"], -0.5, "set 'signal: raw'"),
    ],
)
def test_signals_that_cannot_be_used_are_refused_with_the_file(activity, names, values, message):
    t = np.linspace(0.0, 1.0, 50)
    with pytest.raises(TrialError, match=message) as caught:
        read_activity(csv(names, [t, np.full(50, values)]), activity, ("a",), t)
    assert "given.csv" in str(caught.value)


# ------------------------------------------------------------------------------------------------------------ synergies


def test_muscles_of_a_synergy_move_in_proportion(plain):
    _, free = plain
    first, second = (str(n) for n in free["muscles"][:2])
    outputs, arrays = leg(settings={"synergies": {"both": {first: 1.0, second: 0.5}}, "reserve": 200.0})
    a = arrays["activations"]
    assert a[:, 1] == pytest.approx(0.5 * a[:, 0], abs=1e-9)
    assert outputs["mean_cost"] > 0.0
    assert not np.allclose(a[:, 3], a[:, 0])


# ---------------------------------------------------------------------------------------------------- weights, warnings


def test_a_muscle_with_a_larger_weight_of_its_own_works_less(plain):
    _, free = plain
    _, arrays = leg(settings={"weights": {"soleus": 5.0}})
    soleus, gastrocnemius = (list(free["muscles"]).index(n) for n in ("soleus", "gastrocnemius"))
    assert arrays["activations"][:, soleus].mean() < 0.8 * free["activations"][:, soleus].mean()
    assert arrays["activations"][:, gastrocnemius].mean() > free["activations"][:, gastrocnemius].mean()


def test_the_reserve_that_marks_a_frame_is_a_setting():
    strict, plain_ = (leg(settings={"reserve": 20.0, **more})[1]["status"] for more in ({"reserve_warning": 0.01}, {}))
    assert (strict == 20).sum() > (plain_ == 20).sum()


# ----------------------------------------------------------------------------------------------------------- rate limit


@pytest.mark.parametrize(
    "criterion",
    [
        Power(2.0),
        pytest.param(Power(3.0), marks=pytest.mark.slow),
        MinMax(),
        pytest.param(SoftSaturation(), marks=pytest.mark.slow),
    ],
)
def test_a_loose_rate_limit_changes_nothing_and_a_tight_one_is_kept(opensim, criterion):
    problem = case(opensim, "gait10dof18musc")
    alone = share(problem.balance, problem.muscles, Terms(criterion), problem.reserves)
    loose = share(problem.balance, problem.muscles, Terms(criterion, rate_limit=1e-3), problem.reserves)
    assert np.abs(loose.activations - alone.activations).max() <= 1e-4
    assert loose.cost.sum() == pytest.approx(alone.cost.sum(), rel=1e-8)
    tight = share(problem.balance, problem.muscles, Terms(criterion, rate_limit=0.2), problem.reserves)
    rate = np.abs(np.diff(tight.activations, axis=0)) / np.diff(problem.balance.time)[:, None]
    assert rate.max() == pytest.approx(1 / 0.2, rel=1e-8)
    assert tight.residual.max() <= 1e-8
    assert tight.cost.sum() > alone.cost.sum() + 0.1
    assert np.isfinite(tight.multipliers).all()


def step():
    """A muscle of 100 N at 0.1 m steps from 2 to 8 N m: half a second for a whole activation needs 0.3 s for that."""
    time = np.arange(11) * 0.05
    needed = np.where(time < 0.24, 2.0, 8.0)[:, None]
    balance = MomentBalance(time, ("knee",), ("m",), np.full((11, 1, 1), 0.1), needed, ("N m",))
    return balance, Muscles(("m",), np.full((11, 1), 100.0))


def test_moments_that_change_too_fast_for_the_limit_are_named_frame_by_frame():
    balance, muscles = step()
    assert (share(balance, muscles).status == 0).all()
    sharing = share(balance, muscles, Terms(rate_limit=0.5))
    a = sharing.activations[:, 0]
    assert np.abs(np.diff(a)).max() <= 0.1 + 1e-9
    # the least squares leave a ramp of 0.1 a frame, symmetric about the jump of 0.6 between the frames 4 and 5
    assert sharing.status.tolist() == [0, 0, *[105] * 6, 0, 0, 0]
    lack = [0, 0, -0.5, -1.5, -2.5, 2.5, 1.5, 0.5, 0, 0, 0]
    assert sharing.shortfall[:, 0] == pytest.approx(lack, abs=1e-6)
    assert sharing.proof[:, 0] == pytest.approx(np.array(lack) / np.sqrt(17.5), abs=1e-6)
    assert sharing.residual.max() <= 1e-8
    assert "cannot change so fast" in sharing.summary()
    with pytest.raises(ValueError, match="derivatives"):
        activation_slopes(sharing, np.ones((11, 1)))


def test_a_rate_limit_whose_solver_ends_early_proves_nothing(monkeypatch):
    """What a solver leaves that ended without the least shortfall is no shortfall, and no frame is called too fast."""
    balance, muscles = step()
    monkeypatch.setattr(coupled_frames, "_ITERATIONS", 1)
    ended = share(balance, muscles, Terms(rate_limit=0.5))
    assert (ended.status == 130).all()
    assert np.isnan(ended.activations).all()
    assert not ended.shortfall.any()
    assert not ended.deficit.any()


def test_the_rate_limit_of_a_study_is_kept_over_the_whole_trial():
    outputs, arrays = leg(settings={"rate_limit": 0.15, "reserve": 50.0})
    rate = np.abs(np.diff(arrays["activations"], axis=0)) / np.diff(arrays["time"])[:, None]
    assert rate.max() == pytest.approx(1 / 0.15, rel=1e-6)
    assert outputs["infeasible_frames"] == 0.0
    assert StaticSharing(rate_limit=0.15, reserve=50.0).gradient({"strength": 1.0}, {}) == {}


# ------------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"emg": MeasuredActivity(track={"soleuss": "SOL"})}, "'soleuss' is not a muscle.*did you mean"),
        ({"synergies": {"one": {"foot": 1.0}}}, "'foot' is not a muscle"),
        ({"weights": {"foot": 2.0}}, "'foot' is not a muscle"),
        ({"synergies": {"none": {}}}, "'none' moves no muscle"),
        ({"joint_reactions": [ReactionTerm("toe")]}, "'toe' is not a joint"),
        ({"joint_reactions": [ReactionTerm("knee"), ReactionTerm("knee")]}, "named twice"),
    ],
)
def test_settings_that_fit_no_model_are_refused(settings, message):
    with pytest.raises(InvalidSetting, match=message):
        StaticSharing(**settings).check()


@pytest.mark.parametrize(
    ("settings", "scenario", "message"),
    [
        ({}, {"emg": bundled_file("walking_leg.csv")}, "belong together"),
        ({"inverse_dynamics": "compute"}, {"moments": bundled_file("walking_leg.csv")}, "leave 'moments' out"),
        ({}, {"external_loads": bundled_file("walking_leg.csv")}, "give both or none"),
        (
            {},
            {"external_loads": bundled_file("walking_leg.csv"), "external_forces": bundled_file("walking_leg.csv")},
            "used only with",
        ),
        ({"joint_reactions": [ReactionTerm("knee")]}, {}, "joint reactions need external_loads"),
    ],
)
def test_files_that_nothing_would_be_done_with_are_refused(settings, scenario, message):
    with pytest.raises(InvalidDesign, match=message):
        StaticSharing(**settings).evaluate({}, scenario)


def test_forces_that_end_before_the_motion_leave_frames_without_an_answer(opensim):
    def cut(name, last):
        text = (opensim / "motion" / name).read_text().splitlines()
        return InputFile(name, "\n".join(line for i, line in enumerate(text) if i < len(text) - last).encode())

    trial_file = file(opensim, "motion/gait10dof18musc_kinematics.sto")
    model = file(opensim, "models/gait10dof18musc_subject01.osim")
    loads = ExternalLoads(file(opensim, "motion/gait10dof18musc_walk_grf.xml"), cut("subject01_walk_grf.mot", 900))
    trial = read_trial(
        model, trial_file, frames=TrialFrames((0.6, 1.9)), dynamics=TrialDynamics(loads, gives_moments=True)
    )
    assert set(trial.balance.status.tolist()) == {0, 120}
    assert (np.diff(trial.balance.status) >= 0).all()
