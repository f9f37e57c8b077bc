"""A worker process of the comparison, for systems' Python libraries.

    python worker.py --describe    what can be measured with this Python, as JSON
    python worker.py               one process of a run, as bench/harness/src/spec.rs and crates/rnet-bench describe it

eCAL has an environment of its own, so its Python describes eCAL alone.
"""

from __future__ import annotations

import asyncio
import json
import sys

import systems
from measure.control import Events, Orders
from measure.peer import run_peer


def main() -> int:
    """Runs it."""
    if sys.argv[1:] == ["--describe"]:
        print(json.dumps(systems.describe(), indent=1))
        return 0
    if sys.argv[1:]:
        print(__doc__, file=sys.stderr)
        return 2
    events = Events()
    try:
        orders = Orders()
        system = systems.load(orders.spec["system"])
        asyncio.run(run_peer(system, orders.spec, orders, events))
    except Exception as error:
        events.tell("failed", why=f"{type(error).__name__}: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
