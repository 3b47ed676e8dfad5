"""OpenSim's metabolic probes on Arm26 in random states, in a separate process: ``python peer_metabolics.py MODEL``.

Prints one line of JSON: the muscles' names, and by state (rows) and muscle (columns) activation, fibre length (in
optimal ones), fibre speed (in largest ones), force of the active fibre and of the fibre (N), and the rate (W) by either
probe, with half slow fibres and excitations equal to the activations, without the basal rate. Fibres and tendons are in
equilibrium.
"""

from __future__ import annotations

import json
import random
import sys

import opensim as osim

STATES = 40


def main() -> None:
    osim.Logger.setLevelString("Error")
    model = osim.Model(sys.argv[1])
    muscles = [model.getMuscles().get(i) for i in range(model.getMuscles().getSize())]
    bhargava, umberger = osim.Bhargava2004MuscleMetabolicsProbe(), osim.Umberger2010MuscleMetabolicsProbe()
    bhargava.set_use_force_dependent_shortening_prop_constant(True)
    umberger.set_use_Bhargava_recruitment_model(False)
    umberger.set_include_negative_mechanical_work(False)
    for probe in (bhargava, umberger):
        probe.set_basal_rate_on(False)
        probe.set_report_total_metabolics_only(False)
    for muscle in muscles:
        bhargava.addMuscle(muscle.getName(), 0.5, 40.0, 133.0, 74.0, 111.0)
        umberger.addMuscle(muscle.getName(), 0.5)
    for name, probe in (("bhargava", bhargava), ("umberger", umberger)):
        probe.setName(name)
        model.addProbe(probe)
    state = model.initSystem()
    draw = random.Random(3)
    rows = {key: [] for key in ("activation", "length", "speed", "force", "total", "bhargava", "umberger")}
    coordinates = model.getCoordinateSet()
    for _ in range(STATES):
        for i in range(coordinates.getSize()):
            coordinate = coordinates.get(i)
            low, high = coordinate.getRangeMin(), coordinate.getRangeMax()
            coordinate.setValue(state, draw.uniform(max(low, -0.5), min(high, 2.0)), False)
            coordinate.setSpeedValue(state, draw.uniform(-6.0, 6.0))
        activations = [draw.uniform(0.02, 1.0) for _ in muscles]
        for muscle, activation in zip(muscles, activations, strict=True):
            muscle.setActivation(state, activation)
        model.equilibrateMuscles(state)
        model.setControls(state, osim.Vector(osim.StdVectorDouble(activations)))
        model.realizeReport(state)
        rows["activation"].append(activations)
        rows["length"].append([m.getNormalizedFiberLength(state) for m in muscles])
        rows["speed"].append([m.getNormalizedFiberVelocity(state) for m in muscles])
        rows["force"].append([m.getActiveFiberForce(state) for m in muscles])
        rows["total"].append([m.getFiberForce(state) for m in muscles])
        for probe in (bhargava, umberger):
            labels, values = probe.getProbeOutputLabels(), probe.getProbeOutputs(state)
            by_name = {labels.get(i): values[i] for i in range(labels.getSize())}
            rows[probe.getName()].append(
                [next(v for label, v in by_name.items() if label.endswith(m.getName())) for m in muscles]
            )
    print(json.dumps({"muscles": [m.getName() for m in muscles], **rows}))


if __name__ == "__main__":
    main()
