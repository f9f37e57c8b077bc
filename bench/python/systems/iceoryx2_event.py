"""iceoryx2: shared memory, woken by events, through its Python binding."""

from __future__ import annotations

import contextlib
import ctypes
import zlib
from pathlib import Path

from .base import Publisher, System, installed

ABOUT = {
    "label": "iceoryx2, event wake-up (Python)",
    "client": "iceoryx2 (Python binding of the Rust library)",
    "settings": [
        "safe overflow off and RetryUntilDelivered: a publisher waits rather than overwrite",
        "subscriber buffer of 64 to 1,000 messages, within 64 MiB",
        "a notification after each message; the listener wakes the subscriber (example"
        " event_based_"
        "communication)",
        "messages up to 4 KiB are taken out as bytes, longer ones read in place: whichever is"
        " quicker",
    ],
}

_COPY_UP_TO = 4 << 10
_MOST_BUFFERED = 1000
_LOOK_AT_STOP_MS = 100
_MEMORY = Path("/dev/shm")


class System(System):
    """See the module."""

    @staticmethod
    def version() -> str:
        import iceoryx2  # noqa: F401

        return installed("iceoryx2")

    def publisher(self, net, topic):
        return _Publisher(net, topic)

    def subscribe(self, net, topic, take, stop):
        _receive(net, topic, take, stop)
        _leave(net)


def _receive(net, topic, take, stop) -> None:
    import iceoryx2

    _node, samples, events = _services(net, topic)
    listener = events.listener_builder().create()
    subscriber = samples.subscriber_builder().create()
    wait, receive = listener.timed_wait, subscriber.receive
    timeout = iceoryx2.Duration.from_millis(_LOOK_AT_STOP_MS)
    in_place = topic.max_len > _COPY_UP_TO
    string_at = ctypes.string_at
    while not stop.is_set():
        while (sample := receive()) is not None:
            if in_place:
                take(sample.payload().as_memory_view().cast("B"))
            else:
                take(string_at(sample.payload_ptr, sample.header.number_of_elements))
            sample.delete()
        wait(timeout)
    subscriber.delete()
    listener.delete()


class _Publisher(Publisher):
    def __init__(self, net, topic) -> None:
        import iceoryx2

        self._net = net
        self._node, samples, events = _services(net, topic)
        self._notifier = events.notifier_builder().create()
        self._notify = self._notifier.notify
        publisher = (
            samples.publisher_builder()
            .initial_max_slice_len(max(topic.max_len, 16))
            .backpressure_strategy(iceoryx2.BackpressureStrategy.RetryUntilDelivered)
            .create()
        )
        self._publisher = publisher
        self._loan = publisher.loan_slice_uninit

    def send(self, message) -> None:
        length = len(message)
        sample = self._loan(length)
        if isinstance(message, bytes):
            ctypes.memmove(sample.payload_ptr, message, length)
        else:
            source = (ctypes.c_char * length).from_buffer(message)
            ctypes.memmove(sample.payload_ptr, source, length)
        sample.assume_init().send()
        self._notify()

    def send_in_place(self, length: int, write, number: int) -> None:
        sample = self._loan(length)
        write(sample.payload().as_memory_view().cast("B"), number)
        sample.assume_init().send()
        self._notify()

    def close(self) -> None:
        self._publisher.delete()
        self._notifier.delete()
        del self._node
        _leave(self._net)


def _leave(net) -> None:
    """The last node of a run removes the counter that iceoryx2 keeps in memory for the next one."""
    nodes = _root(net) / "nodes"
    if not nodes.is_dir() or not any(nodes.iterdir()):
        for path in _MEMORY.glob(_prefix(net) + "*"):
            path.unlink(missing_ok=True)
        _link(net).unlink(missing_ok=True)


def _root(net) -> Path:
    return net.dir / "iox2"


def _prefix(net) -> str:
    """A short prefix of the run: it is part of the path of a listener's socket, which has 108 bytes.

    As many bytes as in bench/drivers/iceoryx2, and unlike those in the first.
    """
    return f"p{zlib.crc32(net.tag.encode()):08x}_"


def _link(net) -> Path:
    """Names the owner of the memory: bench/drivers/iceoryx2 removes memory without a directory."""
    return _MEMORY / f"bench-iceoryx2-{_prefix(net)}"


def _services(net, topic):
    """The node, the service of the samples and that of the events, created by the first process."""
    import iceoryx2

    iceoryx2.set_log_level(iceoryx2.LogLevel.Error)
    config = iceoryx2.config.default()
    # Runs at the same time stay apart. The other endpoints of the run make the same link.
    with contextlib.suppress(FileExistsError):
        _link(net).symlink_to(net.dir)
    config.global_cfg.prefix = iceoryx2.FileName.new(_prefix(net))
    config.global_cfg.root_path = iceoryx2.Path.new(str(_root(net)))
    node = (
        iceoryx2.NodeBuilder.new()
        .config(config)
        .signal_handling_mode(iceoryx2.SignalHandlingMode.Disabled)
        .create(iceoryx2.ServiceType.Ipc)
    )
    name = iceoryx2.ServiceName.new(topic.name)
    endpoints = topic.publishers + topic.subscribers
    depth = max(64, topic.depth(most=_MOST_BUFFERED))
    samples = (
        node.service_builder(name)
        .publish_subscribe(iceoryx2.Slice[ctypes.c_uint8])
        .enable_safe_overflow(False)
        .subscriber_max_buffer_size(depth)
        .max_publishers(topic.publishers)
        .max_subscribers(topic.subscribers)
        .max_nodes(endpoints)
        .open_or_create()
    )
    events = (
        node.service_builder(name)
        .event()
        .max_notifiers(topic.publishers)
        .max_listeners(topic.subscribers)
        .max_nodes(endpoints)
        .open_or_create()
    )
    return node, samples, events
