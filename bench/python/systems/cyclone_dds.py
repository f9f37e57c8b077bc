"""Cyclone DDS through its Python binding, with a type and a topic name of ROS 2."""

from __future__ import annotations

from .base import Publisher, System, installed

ABOUT = {
    "label": "Cyclone DDS, ROS 2 type (Python)",
    "client": "cyclonedds (Python binding of the C library)",
    "settings": [
        "type std_msgs::msg::dds_::UInt8MultiArray_ as idlc generates it for Python, topic"
        " rt/<run>/<name>;"
        " the binding turns its data into a list of numbers",
        "reliable, max_blocking_time infinite, keep_all: lossless, the writer waits for its"
        " readers",
        "General/MaxMessageSize 65500B, FragmentSize 65000B: loopback has an MTU of 65536"
        " (Cyclone's "
        "examples/perfscript)",
        "Internal/SocketReceiveBufferSize max 10MB (ROS 2: DDS tuning, Cyclone DDS)",
        "Interfaces: lo only, with multicast=true, as lo carries multicast though its flag"
        " does not say",
        "no Internal/WriteBatch: the binding has no dds_write_flush to end a batch with",
        "a waitset and takes of up to 100 samples, as the binding's documentation does for"
        " streams",
    ],
}

_TAKE_AT_MOST = 100
_LOOK_AT_STOP_S = 0.1

_CONFIG = """<CycloneDDS><Domain>
<General>
<Interfaces><NetworkInterface name="lo" multicast="true"/></Interfaces>
<MaxMessageSize>65500B</MaxMessageSize><FragmentSize>65000B</FragmentSize>
</General>
<Internal><SocketReceiveBufferSize max="10MB"/></Internal>
</Domain></CycloneDDS>"""


class System(System):
    """See the module."""

    @staticmethod
    def version() -> str:
        import cyclonedds.core  # noqa: F401 - loads the C library

        return installed("cyclonedds")

    def publisher(self, net, topic):
        return _Publisher(net, topic)

    def subscribe(self, net, topic, take, stop):
        from cyclonedds.core import InstanceState, ReadCondition, SampleState, ViewState, WaitSet
        from cyclonedds.sub import DataReader
        from cyclonedds.util import duration

        _domain, participant, dds_topic, qos = _join(net, topic)
        reader = DataReader(participant, dds_topic, qos)
        condition = ReadCondition(
            reader, ViewState.Any | InstanceState.Any | SampleState.NotRead
        )
        waitset = WaitSet(participant)
        waitset.attach(condition)
        timeout = duration(seconds=_LOOK_AT_STOP_S)
        while not stop.is_set():
            waitset.wait(timeout)
            while samples := reader.take(_TAKE_AT_MOST):
                for sample in samples:
                    if sample.sample_info.valid_data:
                        take(bytes(sample.data))


class _Publisher(Publisher):
    def __init__(self, net, topic) -> None:
        from cyclonedds.pub import DataWriter

        from .ros_type import MultiArrayLayout, UInt8MultiArray

        self._domain, participant, dds_topic, qos = _join(net, topic)
        self._writer = DataWriter(participant, dds_topic, qos)
        self._write, self._message = self._writer.write, UInt8MultiArray
        self._layout = MultiArrayLayout()

    def send(self, message) -> None:
        self._write(self._message(self._layout, message))


def _join(net, topic):
    from cyclonedds.core import Policy, Qos
    from cyclonedds.domain import Domain, DomainParticipant
    from cyclonedds.topic import Topic
    from cyclonedds.util import duration

    from .ros_type import UInt8MultiArray

    domain = Domain(net.number, _CONFIG)
    participant = DomainParticipant(net.number)
    qos = Qos(
        Policy.Reliability.Reliable(duration(infinite=True)),
        Policy.History.KeepAll,
        Policy.Durability.Volatile,
    )
    # Another comparison may use the same domain. ROS 2 would write a namespace so, where a name has
    # no "-".
    name = f"rt/{net.tag}/{topic.name}".replace("-", "_")
    return domain, participant, Topic(participant, name, UInt8MultiArray), qos
