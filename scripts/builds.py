#!/usr/bin/env python3
"""Prints the compilations of robot-net's builds in order, and why a build compiles a crate again.

Reads cargo's plan and compiles nothing: builds.py [PACKAGE...] adds the tests of single packages.
"""
import hashlib
import json
import os
import subprocess
import sys

BUILDS = {
    "make demo": "build --no-default-features -p rnet-cli -p rnet-python -p rnet-demo",
    "make test": "test --workspace --lib --bins --tests --examples --no-run",
    "make build-link-dev": "build -p rnet-net --features zenoh --bin rnet-link",
    "make test-net": "test -p rnet-net --features zenoh --lib --bins --tests --no-run",
}


def plan(command):
    """The compilations of a command: by the hash of their distinguishing inputs, their descriptions and
    dependencies.
    """
    # Only nightly versions of cargo provide the plan.
    env = os.environ | {"RUSTC_BOOTSTRAP": "1"}
    options = ["--unit-graph", "-Z", "unstable-options"]
    units = json.loads(subprocess.check_output(["cargo", *command.split(), *options], env=env))["units"]
    hashes, compilations = {}, {}

    def hash_of(at):
        if at not in hashes:
            unit = units[at]
            profile = {key: value for key, value in unit["profile"].items() if key != "name"}
            name = unit["pkg_id"].rsplit("/", 1)[-1].removeprefix("crates.io-index#")
            target = (name, unit["target"]["name"], unit["target"]["kind"][0], unit["mode"])
            what = (target, unit["features"], json.dumps(profile, sort_keys=True))
            needs = sorted(hash_of(needed["index"]) for needed in unit["dependencies"])
            hashes[at] = hashlib.sha256(repr((what, needs)).encode()).hexdigest()
            compilations[hashes[at]] = (target, set(unit["features"]), needs)
        return hashes[at]

    for at in range(len(units)):
        hash_of(at)
    return {key: unit for key, unit in compilations.items() if unit[0][3] != "run-custom-build"}


def main():
    sys.setrecursionlimit(100_000)
    builds, done = BUILDS | {name: f"test -p {name} --no-run" for name in sys.argv[1:]}, {}
    for name, command in builds.items():
        units = plan(command)
        new = units.keys() - done.keys()
        again = {key for key in new if any(units[key][0] == old[0] for old in done.values())}
        print(f"{name}: {len(units)} compilations, {len(new)} new, {len(again)} of them repeated")
        # The first causes: their dependents are recompiled too.
        for key in sorted(again, key=lambda key: units[key][0]):
            target, features, needs = units[key]
            if not again.intersection(needs):
                olds = [old[1] for old in done.values() if old[0] == target]
                print("   ", *target[:3], *[f"+{sorted(features - old)} -{sorted(old - features)}" for old in olds])
        if name in BUILDS:
            done |= units


if __name__ == "__main__":
    main()
