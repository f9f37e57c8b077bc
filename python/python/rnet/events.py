"""Events passed to callbacks, and statistics: named tuples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from .errors import RnetError

if TYPE_CHECKING:
    from ._rnet import Sample
    from .compare import PublishedType

__all__ = [
    "AnyMessage",
    "Backlog",
    "ClientStats",
    "CommandStats",
    "DeadlineMissed",
    "Endpoint",
    "EndpointEvent",
    "KnownGap",
    "Liveliness",
    "LivelinessChange",
    "MatchEvent",
    "NodeEvent",
    "Origin",
    "PublisherStats",
    "PushStats",
    "ServiceStats",
    "Tick",
    "Undelivered",
    "WallOffset",
]


class MatchEvent(NamedTuple):
    """A change of the peers matched with a publisher or subscriber."""

    #: "matched": a peer has joined and is connected; "unmatched": it has closed its endpoint;
    #: "lost": its process has died; "incompatible": see ``error``; "changed": it represents more or fewer
    #: subscribers of another host.
    kind: Literal["matched", "unmatched", "lost", "incompatible", "changed", "other"]
    #: Name of the peer's node.
    node: str | None
    #: Id of the peer's publisher or subscription.
    id: int | None
    #: Why a peer is incompatible: IncompatibleTypeError or IncompatibleQosError.
    error: RnetError | None


class DeadlineMissed(NamedTuple):
    """Periods of a deadline in which a publisher sent nothing."""

    #: Name of the publisher's node.
    node: str
    #: Id of the publisher.
    id: int
    #: Missed periods since the last such event, at least 1.
    missed: int
    #: All missed periods of this publisher so far.
    total: int


class Liveliness(NamedTuple):
    """How many of a subscriber's publishers are alive."""

    #: Matched publishers that are alive.
    alive: int
    #: Matched publishers that have not asserted their liveliness within their lease.
    not_alive: int


class LivelinessChange(NamedTuple):
    """A publisher became alive, or is no longer alive."""

    #: Name of the publisher's node.
    node: str
    #: Id of the publisher.
    id: int
    #: Whether it is alive now. A publisher that has left or died is not, and is in neither count.
    alive: bool
    #: The counts after the change.
    counts: Liveliness


class NodeEvent(NamedTuple):
    """A node joined, left or died."""

    kind: Literal["joined", "left", "died", "other"]
    #: Name of the node.
    node: str


class Endpoint(NamedTuple):
    """A publisher or subscriber of a node of the domain."""

    #: Its id, unique in the domain; of a publisher as in ``Sample.publisher``.
    id: int
    role: Literal["publisher", "subscriber"]
    #: Its topic, with the leading slash.
    topic: str
    #: Name of its node; "@host/node" for one of another host.
    node: str
    #: The type of its messages, as ``rnet topic info --json`` shows it: ``kind`` is "raw", "plain" or "protobuf".
    type: dict[str, Any]
    #: The QoS that it offers or requests, as ``rnet topic info --json`` shows it.
    qos: dict[str, Any]
    #: Number of endpoints that it represents: 1, or more for subscribers of another host.
    endpoint_count: int


class EndpointEvent(NamedTuple):
    """A publisher or subscriber was opened or closed."""

    #: "opened": it exists; "closed": it was closed, or its node has left; "lost": its process has died.
    #: "changed": it represents more or fewer endpoints, see ``Endpoint.endpoint_count``.
    kind: Literal["opened", "closed", "lost", "changed", "other"]
    endpoint: Endpoint


class AnyMessage(NamedTuple):
    """A message of a topic that matches the pattern of ``Node.subscribe_any``."""

    #: Its topic, with the leading slash.
    topic: str
    #: Its publisher, and the type of its messages.
    type: PublishedType
    #: The message, undecoded.
    sample: Sample


class Tick(NamedTuple):
    """One tick of a timer or a rate."""

    #: Its number in the schedule, including skipped ticks: 1 is due one period after the start.
    number: int
    #: When it was due, in ns of the node's time, ``Node.now()``; for ``rnet.Rate(hz)``, of ``rnet.now_ns()``.
    #: After a jump of simulated time it is counted back from the new time, down to 0.
    due_ns: int
    #: Its delay, in seconds.
    late_s: float
    #: Number of ticks skipped since the previous one that ran.
    missed: int


class Backlog(NamedTuple):
    """Messages that were sent but not yet read by a subscriber."""

    #: Number of messages. Includes those that the log no longer holds, until the subscriber reads again
    #: and counts them as lost.
    messages: int
    #: Age of the oldest one that the log still holds, in seconds.
    age_s: float


class Origin(NamedTuple):
    """The original of a forwarded message."""

    #: Id of the host on which it was sent.
    host: int
    #: Id of the publisher that sent it.
    publisher: int
    #: Its sequence number at that publisher, from 0.
    seq: int


class KnownGap(NamedTuple):
    """Messages that the publisher knows to be missing."""

    #: Why they are missing.
    cause: Literal["overrun", "link", "restart", "detached"]
    #: Number of messages.
    size: int


class PublisherStats(NamedTuple):
    """Statistics of a subscriber about one publisher."""

    #: The publisher's id, as in ``Sample.publisher``. A subscriber with a callback combines all
    #: closed publishers in one entry, with 0 here.
    publisher: int
    #: Name of its node.
    node: str
    #: Messages received from it.
    received: int
    #: Messages lost, by cause: "overrun", "link", "restart", "detached".
    lost: dict[str, int]
    #: Whether it is still connected.
    connected: bool
    #: Messages received from it that could not be decoded as the topic's type.
    malformed: int
    #: Messages that this subscriber skipped: beyond the number that it keeps, or older than the newest
    #: that ``latest`` returned.
    skipped: int
    #: Unread messages.
    behind: Backlog
    #: Messages not delivered because they were older than the publisher's lifespan; neither lost nor skipped.
    expired: int
    #: Periods of the subscriber's deadline in which the publisher sent nothing.
    deadline_missed: int


class WallOffset(NamedTuple):
    """The offset of the host's wall clock from ``rnet.now_ns()``."""

    #: Added to ``rnet.now_ns()`` it gives ns since 1970-01-01 UTC.
    offset_ns: int
    #: Uncertainty of the offset in either direction, in ns.
    uncertainty_ns: int


class CommandStats(NamedTuple):
    """Counters of a command receiver; from ``Command.stats``."""

    #: Commands that were applied.
    applied: int
    #: Commands that were older than the deadline on arrival, or when they could be applied.
    late: int
    #: Commands that had already been applied, or that were older than an applied one.
    repeated: int
    #: Commands of drivers whose authority had ended.
    superseded: int
    #: Commands of nodes that never had the authority they claimed.
    unauthorised: int
    #: Commands that could not be decoded.
    malformed: int
    #: Commands that were skipped for a newer one of the driver, or lost in transit.
    skipped: int
    #: Number of fallbacks, without those at opening and closing.
    fallbacks: int
    #: Exceptions of the functions that apply commands or fallbacks.
    panics: int
    #: Commands that took longer to apply than the deadline.
    overruns: int


class PushStats(NamedTuple):
    """Counters of the jobs of a pusher; from ``Pusher.stats``."""

    #: Jobs accepted by ``push``.
    pushed: int
    #: Jobs acknowledged by a worker.
    done: int
    #: Jobs sent to a second worker.
    redelivered: int
    #: Jobs returned as undelivered, for any reason.
    undelivered: int
    #: Jobs that are not finished, including those that wait for a worker.
    open: int


class Undelivered(NamedTuple):
    """A job returned as undelivered: no worker acknowledged it."""

    #: The pushed job.
    job: Any
    #: The reason: CallFailedError with the error of its worker; ServerLostError, CallLostError, WaitTimeoutError or CallCancelledError if two workers
    #: had it and neither acknowledged it; IncompatibleTypeError if the workers have another type; ClosedError if the pusher was
    #: closed first.
    error: RnetError


class ServiceStats(NamedTuple):
    """Counters of a server; from ``Service.stats``."""

    #: Accepted requests, without refused ones.
    calls: int
    #: Calls whose handler is running.
    running: int
    #: Calls waiting for a handler.
    waiting: int
    #: Calls that were refused because the backlog was full, and jobs that arrived while their worker was closing.
    refused: int
    #: Calls whose handler raised an exception.
    failed: int
    #: Calls that were cancelled, or whose caller was gone, before their handler had ended.
    cancelled: int
    #: Invalid requests: without a call number, or with the number of an open call.
    malformed: int
    #: Replies that could not be sent: the caller was gone, or did not read.
    unsent: int
    #: Requests that were dropped because the endpoints for the reply do not exist: they do not come from a client, or
    #: its endpoints were not found within 5 s.
    unanswerable: int


class ClientStats(NamedTuple):
    """Counters of a client; from ``Client.stats``."""

    #: Started calls.
    calls: int
    #: Open calls.
    open: int
    #: Replies that were dropped because their call had already ended.
    late: int
    #: Calls sent to another server because one refused.
    rerouted: int
    #: Feedback messages skipped because too many were unread.
    feedback_skipped: int
    #: Feedback messages that did not arrive: the server had no room for them because this client did not read, or
    #: they were lost in transit.
    feedback_lost: int
