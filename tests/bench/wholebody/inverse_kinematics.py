"""OpenSim's inverse kinematics of a walk, in its own process: ``inverse_kinematics.py MODEL.json WALK.trc ACCURACY``.

The model is a tree of bodies whose axes are those of the laboratory in the static posture: name, parent ("" for the
ground), type of joint, its centre and markers (m, static posture). Prints one line of JSON: milliseconds of processor
time for a frame, and the RMS distance m of the markers.
"""

import json
import sys
import time

import opensim


def joint(body: dict, model, bodies: dict, centres: dict):
    parent = bodies[body["parent"]] if body["parent"] else model.getGround()
    offset = [c - p for c, p in zip(body["centre"], centres[body["parent"]], strict=True)]
    zero = opensim.Vec3(0.0)
    places = (parent, opensim.Vec3(*offset), zero, bodies[body["name"]], zero, zero)
    kinds = {"free": opensim.FreeJoint, "ball": opensim.BallJoint, "pin": opensim.PinJoint}
    return kinds[body["joint"]](f"{body['name']}_joint", *places)


def built(stated: list) -> "opensim.Model":
    model = opensim.Model()
    bodies, centres = {}, {"": [0.0, 0.0, 0.0]}
    for body in stated:
        made = opensim.Body(body["name"], 1.0, opensim.Vec3(0.0), opensim.Inertia(0.01, 0.01, 0.01, 0.0, 0.0, 0.0))
        model.addBody(made)
        bodies[body["name"]], centres[body["name"]] = made, body["centre"]
        model.addJoint(joint(body, model, bodies, centres))
        for name, place in body["markers"].items():
            local = opensim.Vec3(*(p - c for p, c in zip(place, body["centre"], strict=True)))
            model.addMarker(opensim.Marker(name, made, local))
    model.finalizeConnections()
    return model


def main(model_file: str, trc: str, accuracy: str) -> None:
    with open(model_file, encoding="utf-8") as file:
        model = built(json.load(file))
    state = model.initSystem()
    markers = opensim.MarkersReference(trc, opensim.SetMarkerWeights())
    solver = opensim.InverseKinematicsSolver(model, markers, opensim.SimTKArrayCoordinateReference())
    solver.setAccuracy(float(accuracy))
    times = list(opensim.TimeSeriesTableVec3(trc).getIndependentColumn())
    state.setTime(times[0])
    solver.assemble(state)
    began = time.process_time()
    for t in times[1:]:
        state.setTime(t)
        solver.track(state)
    taken = time.process_time() - began
    names = [marker.getName() for marker in model.getMarkerSet()]
    squares = [solver.computeCurrentMarkerError(name) ** 2 for name in names]
    print(
        json.dumps({"milliseconds": 1e3 * taken / (len(times) - 1), "distance": (sum(squares) / len(squares)) ** 0.5})
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
