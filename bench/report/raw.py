"""The raw data of a run, indexed: which system did what, in which repetition, and why not."""

import gzip
import json

from phase import Phase

# robot-net with its default way of waiting (adaptive), set reliable as the others are; the one of
# them that takes part in a workload is what the others are compared with. Which configuration is
# best in a table is no question there: a choice made afterwards would favour robot-net.
# (Of a key that is watched it is the watcher, and of calls the service: the messages in those tables stand
# beside them.)
DEFAULTS = ("rnet-watch", "rnet-call", "rnet-adaptive", "py-rnet", "rnet-state")
# A reader that spins, and which of ours does the same.
SPINS = {"iceoryx2-poll": "rnet-spin"}
# Sockets without a library: what a library's price is measured by.
FLOOR = ("tcp", "unix")


def load(path):
    """Reads raw data from `path`, which may be compressed (.gz)."""
    opened = gzip.open if str(path).endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8") as file:
        raw = json.load(file)
    if raw.get("format") != 1:
        raise ValueError(f"{path}: format {raw.get('format')!r}, this report reads format 1")
    return raw


class Data:
    """Raw data with an index over (workload, variant, system, phase)."""

    def __init__(self, raw):
        self.raw = raw
        self.systems = raw.get("systems", {})
        self.workloads = raw.get("workloads", {})
        self._cells = {}
        self._failures = {}
        self._repetitions = {}
        # Insertion-ordered: variants and phases appear in the report as they were run.
        self._variants = {}
        self._phases = {}
        self._ran = {}
        for run in raw.get("runs", []):
            self._add(run)

    def _add(self, run):
        workload, variant, system = run["workload"], run["variant"], run["system"]
        self._variants.setdefault(workload, {})[variant] = True
        self._ran.setdefault(workload, {})[system] = True
        which = (workload, variant, system)
        self._repetitions[which] = self._repetitions.get(which, 0) + 1
        if run.get("error"):
            self._failures.setdefault(which, []).append((run["repetition"], run["error"]))
        for phase in run.get("phases") or []:
            self._phases.setdefault(workload, {})[phase["label"]] = True
            # A failed run keeps its finished phases; its row shows the failure.
            cell = self._cells.setdefault((*which, phase["label"]), {})
            cell[run["repetition"]] = Phase(phase)

    def variants(self, workload):
        """The variants of a workload, in the order in which they were run."""
        return list(self._variants.get(workload, {}))

    def phases(self, workload):
        """The labels of a workload's phases, in the order in which they were run."""
        return list(self._phases.get(workload, {}))

    def cell(self, workload, variant, system, label):
        """Repetition -> `Phase`; empty where nothing was measured."""
        return self._cells.get((workload, variant, system, label), {})

    def ran_workloads(self):
        """The workloads with a run."""
        return list(self._ran)

    def all_cells(self):
        """(workload, variant, system, phase) of everything measured."""
        return list(self._cells)

    def rows(self, workload):
        """The systems that a table of the workload shows, those that cannot run included."""
        planned = self.workloads.get(workload, {}).get("systems", [])
        return list(dict.fromkeys([*planned, *self._ran.get(workload, {})]))

    def pairs(self, workload):
        """The (variant, phase) pairs for which at least one system has a figure."""
        found = {(v, p) for w, v, _, p in self._cells if w == workload}
        variants, phases = self.variants(workload), self.phases(workload)
        return [(v, p) for v in variants for p in phases if (v, p) in found]

    def label(self, system):
        """A system's name in tables."""
        return self.systems.get(system, {}).get("label") or system

    def is_ours(self, system):
        """Whether it is a configuration of robot-net."""
        words = system.lower().replace("_", "-").split("-")
        return "rnet" in words or self.label(system).lower().startswith("robot-net")

    def is_default(self, system):
        """Whether it is robot-net with its default way of waiting."""
        return system in DEFAULTS

    def is_rival(self, system):
        """Whether the default configuration is to be compared with it in the findings: a library
        of others whose reader does not spin."""
        return not (self.is_ours(system) or system in FLOOR or system in SPINS)

    def failures(self, workload, variant, system):
        """(repetition, why) of each run that failed."""
        return self._failures.get((workload, variant, system), [])

    def repetitions(self, workload, variant, system):
        """How many runs there were, failed ones included."""
        return self._repetitions.get((workload, variant, system), 0)

    def why_absent(self, workload, variant, system):
        """The reason for a missing figure, in words."""
        unavailable = self.systems.get(system, {}).get("unavailable")
        if unavailable:
            return unavailable
        for skip in self.raw.get("skipped") or []:
            if skip["workload"] == workload and skip["system"] == system:
                if skip.get("variant") in (None, "", variant):
                    return skip["why"]
        failures = self.failures(workload, variant, system)
        if failures:
            return "failed: " + failures[0][1]
        return "not run"
