"""OpenSim's inverse kinematics of a walk, in its own process: ``inverse_kinematics.py MODEL.json WALK.trc 1e-5 ...``.

The model is a tree of bodies whose axes are those of the laboratory in the static posture: name, parent ("" for the
ground), type of joint, its centre and markers (m, static posture). Prints one line of JSON, by accuracy: milliseconds
of processor time for a frame, the RMS distance m of the markers in the last frame, and the greatest distance m of a
marker of the model from its place at an accuracy of 1e-12.
"""

import json
import math
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
        segment = opensim.Body(body["name"], 1.0, opensim.Vec3(0.0), opensim.Inertia(0.01, 0.01, 0.01, 0.0, 0.0, 0.0))
        model.addBody(segment)
        bodies[body["name"]], centres[body["name"]] = segment, body["centre"]
        model.addJoint(joint(body, model, bodies, centres))
        for name, position in body["markers"].items():
            local = opensim.Vec3(*(p - c for p, c in zip(position, body["centre"], strict=True)))
            model.addMarker(opensim.Marker(name, segment, local))
    model.finalizeConnections()
    return model


def tracked(model: "opensim.Model", trc: str, accuracy: float) -> tuple[float, list, list]:
    """Milliseconds of processor time for a frame, places of all markers in every frame, and their last distances."""
    state = model.initSystem()
    markers = opensim.MarkersReference(trc, opensim.SetMarkerWeights())
    solver = opensim.InverseKinematicsSolver(model, markers, opensim.SimTKArrayCoordinateReference())
    solver.setAccuracy(accuracy)
    names = [marker.getName() for marker in model.getMarkerSet()]
    times = list(opensim.TimeSeriesTableVec3(trc).getIndependentColumn())
    state.setTime(times[0])
    solver.assemble(state)
    seconds, places = 0.0, []
    for t in times[1:]:
        state.setTime(t)
        began = time.process_time()
        solver.track(state)
        seconds += time.process_time() - began
        places.append([[solver.computeCurrentMarkerLocation(name).get(k) for k in range(3)] for name in names])
    return 1e3 * seconds / (len(times) - 1), places, [solver.computeCurrentMarkerError(name) for name in names]


def main(model_file: str, trc: str, *accuracies: str) -> None:
    with open(model_file, encoding="utf-8") as file:
        model = built(json.load(file))
    _, least, _ = tracked(model, trc, 1e-12)
    results = {}
    for accuracy in accuracies:
        milliseconds, places, distances = tracked(model, trc, float(accuracy))
        error = max(
            math.dist(a, b) for frame, then in zip(places, least, strict=True) for a, b in zip(frame, then, strict=True)
        )
        distance = (sum(d**2 for d in distances) / len(distances)) ** 0.5
        results[accuracy] = {"milliseconds": milliseconds, "distance": distance, "error": error}
    print(json.dumps(results))


if __name__ == "__main__":
    main(*sys.argv[1:])
