"""The systems, each in a module of its own with a class `System`:

    ABOUT                                   label, client and settings for the report
    version()                               of the library that is installed
    BROKER                                  None, "redis" or "nats"
    MAY_LOSE                                None, or why messages may be lost
    publisher(net, topic)                   an object with send(bytes-like), flush(), close() and
                                            send_in_place(length, write, number)
    subscribe(net, topic, take, stop)       calls take(bytes-like) with each message until stop

Each may be a coroutine where the library is one for asyncio. What `send` is given may be written
again when it returns.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys

_MODULES = {
    "py-zmq": "zmq_pubsub",
    "py-redis": "redis_pubsub",
    "py-nats": "nats_core",
    "py-zenoh": "zenoh_peer",
    "py-cyclonedds": "cyclone_dds",
    "py-iceoryx2": "iceoryx2_event",
    "py-lcm": "lcm_udpm",
    "py-ecal": "ecal_shm",
    "py-rnet": "rnet_reliable",
}


def load(system: str):
    """A system by its id."""
    return importlib.import_module(f"{__name__}.{_MODULES[system]}").System()


def describe() -> dict[str, dict]:
    """Descriptions of the systems for the report, and why one cannot run here."""
    ecal_here = importlib.util.find_spec("ecal") is not None
    ids = [system for system in _MODULES if (system == "py-ecal") == ecal_here]
    return {system: _describe(system) for system in ids}


def _describe(system: str) -> dict:
    module = importlib.import_module(f"{__name__}.{_MODULES[system]}")
    version = unavailable = None
    try:
        version = module.System.version()
    except Exception as error:
        unavailable = (
            f"{type(error).__name__}: {error}; bench/setup.sh installs it for {sys.executable}"
        )
    return {
        **module.ABOUT,
        "version": version,
        "unavailable": unavailable,
        "broker": module.System.BROKER,
        "may_lose": module.System.MAY_LOSE,
    }
