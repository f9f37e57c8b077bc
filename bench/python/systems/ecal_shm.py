"""eCAL through shared memory, through its Python binding."""

from __future__ import annotations

from .base import Publisher, System, installed

ABOUT = {
    "label": "eCAL shared memory (Python)",
    "client": "eclipse-ecal (Python binding of the C++ library)",
    "settings": [
        "acknowledge_timeout_ms=5000: the publisher waits until the subscriber is done with a"
        " message;"
        " without it the next one overwrites it (eCAL: transport layers, shared memory)",
        "shared memory alone: UDP and TCP are off, both ends are on one machine",
    ],
}

_ACKNOWLEDGE_MS = 5000


class System(System):
    """See the module."""

    @staticmethod
    def version() -> str:
        import ecal.nanobind_core as ecal

        return f"{installed('eclipse-ecal')}, eCAL {ecal.get_version_string()}"

    def publisher(self, net, topic):
        return _Publisher(net, topic)

    def subscribe(self, net, topic, take, stop):
        import ecal.nanobind_core as ecal

        ecal.initialize("bench subscriber")
        config = ecal.get_subscriber_configuration()
        config.layer.udp.enable = False
        subscriber = ecal.Subscriber(_name(net, topic), ecal.DataTypeInformation(), config)
        subscriber.set_receive_callback(lambda _publisher, _type, data: take(data.buffer))
        stop.wait()
        subscriber.remove_receive_callback()
        ecal.finalize()


class _Publisher(Publisher):
    def __init__(self, net, topic) -> None:
        import ecal.nanobind_core as ecal

        ecal.initialize("bench publisher")
        config = ecal.get_publisher_configuration()
        config.layer.shm.acknowledge_timeout_ms = _ACKNOWLEDGE_MS
        config.layer.udp.enable = False
        config.layer.tcp.enable = False
        self._finalize = ecal.finalize
        publisher = ecal.Publisher(_name(net, topic), ecal.DataTypeInformation(), config)
        self._send = publisher.send

    def send(self, message) -> None:
        # It takes nothing but bytes. False is "no subscriber yet".
        self._send(bytes(message))

    def close(self) -> None:
        self._finalize()


def _name(net, topic) -> str:
    """eCAL has one space of names for the machine."""
    return f"{net.tag}_{topic.name}"
