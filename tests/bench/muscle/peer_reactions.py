"""OpenSim's joint reactions of a model in a separate process: ``python peer_reactions.py MODEL FRAMES.json``.

The file has a list of frames: ``values``, ``rates`` and ``accelerations`` by coordinate, ``forces`` by muscle (N).
Drives of the coordinates give the accelerations. Prints one line of JSON: for each frame and joint, in the order of the
model, force (N) and moment (N m) of the parent on the child and the place (m) of the joint on it, in ground axes.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import opensim as osim


def main() -> None:
    osim.Logger.setLevelString("Error")
    model = osim.Model(sys.argv[1])
    coordinates = [model.getCoordinateSet().get(i) for i in range(model.getCoordinateSet().getSize())]
    drives = []
    for coordinate in coordinates:
        drive = osim.CoordinateActuator(coordinate.getName())
        drive.setName(f"drive_{coordinate.getName()}")
        model.addForce(drive)
        drives.append(drive)
    state = model.initSystem()
    muscles = [model.getMuscles().get(i) for i in range(model.getMuscles().getSize())]
    joints = [model.getJointSet().get(i) for i in range(model.getJointSet().getSize())]
    rows = []
    for frame in json.loads(Path(sys.argv[2]).read_text()):
        for coordinate in coordinates:
            coordinate.setValue(state, frame["values"][coordinate.getName()], False)
            coordinate.setSpeedValue(state, frame["rates"][coordinate.getName()])
        for muscle in muscles:
            muscle.overrideActuation(state, True)
            muscle.setOverrideActuation(state, frame["forces"][muscle.getName()])

        def accelerations(drive_forces: np.ndarray) -> np.ndarray:
            for drive, force in zip(drives, drive_forces, strict=True):
                drive.overrideActuation(state, True)
                drive.setOverrideActuation(state, float(force))
            model.realizeAcceleration(state)
            return np.array([coordinate.getAccelerationValue(state) for coordinate in coordinates])

        free = accelerations(np.zeros(len(drives)))
        inverse_mass = np.array([accelerations(unit) - free for unit in np.eye(len(drives))]).T
        measured = np.array([frame["accelerations"][coordinate.getName()] for coordinate in coordinates])
        accelerations(np.linalg.solve(inverse_mass, measured - free))
        row = []
        for joint in joints:
            reaction = joint.calcReactionOnChildExpressedInGround(state)
            position = joint.getChildFrame().getPositionInGround(state)
            vectors = (reaction.get(1), reaction.get(0), position)
            row.append([[vector.get(i) for i in range(3)] for vector in vectors])
        rows.append(row)
    print(json.dumps({"joints": [joint.getName() for joint in joints], "reactions": rows}))


if __name__ == "__main__":
    main()
