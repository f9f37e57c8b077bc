"""Computes the figures of the work between two hosts again, with none of the report's code."""

# Whose CPU a column shows, between two hosts.
HOST_PARTS = {
    "publishers": "publisher",
    "subscribers": "subscriber",
    "the publishers’ link": "link a",
    "the subscribers’ link": "link b",
    "the server": "server",
}
WIRE = "bytes on the cable per message sent"


def cable_figure(name, phase):
    """Bytes on the cable per message, or the CPU of a part as a share of a core, %."""
    if name == WIRE:
        results = [p.get("result") or {} for p in phase["processes"]]
        sent = sum(s["count"] for r in results for s in r.get("sent", []))
        return phase["wire_bytes"] / sent
    who = HOST_PARTS[name.removeprefix("CPU of ")]
    spent = [p["cpu_ns"] for p in phase["processes"] if who in p["name"]]
    return sum(spent) / phase["elapsed_s"] / 1e7 if spent else None
