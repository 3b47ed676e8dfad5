"""OpenSim's set-up files: what they say about the time holds, and what has no effect is listed."""

import pytest
import walking_laboratory as laboratory
from designopt_laboratory.model import LaboratoryTrial

from designopt.plugin import InputFile, InvalidSetting

WALK = laboratory.walk(cycles=0.6)
TRIAL = {"recording": InputFile("walk.trc", WALK.trc()), "reactions": InputFile("walk.mot", WALK.mot(6))}
SPAN = (0.1, 0.3)  # s


def tool(elements):
    tasks = "<IKTaskSet><objects/></IKTaskSet>"
    text = f"<OpenSimDocument><InverseKinematicsTool>{tasks}{elements}</InverseKinematicsTool></OpenSimDocument>"
    return InputFile("ik.xml", text.encode())


def time_range(marker_file=""):
    named = f"<marker_file>{marker_file}</marker_file>" if marker_file else ""
    return tool(f"<time_range>{SPAN[0]} {SPAN[1]}</time_range>{named}<accuracy>1e-5</accuracy>")


@pytest.mark.parametrize(
    ("tasks", "window", "span", "note"),
    [
        (time_range(), None, SPAN, "results are within the time_range from 0.1 to 0.3 s"),
        (time_range("data/walk.trc"), None, SPAN, "results are within"),
        (time_range("run.trc"), None, None, "is for run.trc, not for walk.trc, and has no effect"),
        (time_range(), (0.2, 0.25), (0.2, 0.25), "the study's window replaces the time_range"),
    ],
)
def test_the_time_range_of_inverse_kinematics_holds_for_its_recording_unless_the_study_has_a_window(
    analysed, tasks, window, span, note
):
    _, arrays = analysed(TRIAL, tasks=tasks, window=window, until="moments")
    first, last = span or WALK.recording.time[[0, -1]]
    assert arrays["time"][[0, -1]] == pytest.approx([first, last], abs=0.011)
    remarks = LaboratoryTrial(
        model=InputFile("walker.osim", laboratory.model_text()), tasks=tasks, window=window
    ).remarks(TRIAL)
    assert any(note in remark for remark in remarks)
    assert "ik.xml: without effect here: accuracy" in remarks


def test_a_time_range_beside_the_recording_is_refused():
    tasks = tool("<time_range>5 6</time_range>")
    with pytest.raises(
        InvalidSetting, match=r"ik.xml: the time_range from 5 to 6 s is outside of walk.trc, which runs"
    ):
        laboratory.raise_mistake(
            LaboratoryTrial(model=InputFile("walker.osim", laboratory.model_text()), tasks=tasks), TRIAL
        )


def test_files_that_a_set_up_of_inverse_kinematics_names_have_no_effect_beside_those_of_the_study():
    """Its recording says which trial the time is for; without a time it has no effect either."""
    named = "<model_file>other.osim</model_file><coordinate_file>sensor.mot</coordinate_file>"
    walker = InputFile("walker.osim", laboratory.model_text())
    for time, further in (("<time_range>0.1 0.3</time_range>", ""), ("", ", marker_file")):
        tasks = tool(f"{time}{named}<marker_file>walk.trc</marker_file>")
        remarks = LaboratoryTrial(model=walker, tasks=tasks).remarks(TRIAL)
        assert f"ik.xml: without effect here: model_file, coordinate_file{further}" in remarks


def test_elements_of_scaling_and_loads_without_effect_are_listed():
    scaling = (
        "<OpenSimDocument><ScaleTool><mass>70</mass><age>40</age><GenericModelMaker><model_file>Unassigned</model_file>"
        "<marker_set_file>other.xml</marker_set_file></GenericModelMaker><ModelScaler>"
        "<scaling_order>measurements</scaling_order><output_model_file>a.osim</output_model_file></ModelScaler>"
        "<MarkerPlacer><apply>true</apply><max_marker_movement>-1</max_marker_movement>"
        "<coordinate_file>pose.mot</coordinate_file></MarkerPlacer></ScaleTool></OpenSimDocument>"
    )
    force = (
        "<ExternalForce><applied_to_body>calcn_r</applied_to_body><force_identifier>ground_force_v</force_identifier>"
        "<data_source_name>other.mot</data_source_name></ExternalForce>"
    )
    loads = (
        f"<OpenSimDocument><ExternalLoads><objects>{force}</objects><datafile>walk.mot</datafile>"
        "<lowpass_cutoff_frequency_for_load_kinematics>6</lowpass_cutoff_frequency_for_load_kinematics></ExternalLoads>"
        "</OpenSimDocument>"
    )
    model = LaboratoryTrial(
        model=InputFile("walker.osim", laboratory.model_text()), scaling=InputFile("scale.xml", scaling.encode())
    )
    columns = "time\tground_force_vx\tground_force_vy\tground_force_vz\n"
    rows = "".join(f"{t:.3f}\t0\t600\t0\n" for t in WALK.recording.time)
    table = f"grf\nnRows={len(WALK.recording.time)}\nnColumns=4\ninDegrees=no\nendheader\n{columns}{rows}"
    static = InputFile("static.trc", laboratory.standing().trc())
    remarks = model.remarks(
        {**TRIAL, "reactions": InputFile("walk.mot", table.encode()), "static": static,
         "external_loads": InputFile("loads.xml", loads.encode())}
    )  # fmt: skip
    listed = (
        "age, GenericModelMaker/marker_set_file, ModelScaler/output_model_file, MarkerPlacer/max_marker_movement,"
        " MarkerPlacer/coordinate_file"
    )
    assert f"scale.xml: without effect here: {listed}" in remarks
    listed = "lowpass_cutoff_frequency_for_load_kinematics, ExternalForce/data_source_name"
    assert f"loads.xml: without effect here: {listed}" in remarks
