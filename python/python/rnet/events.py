"""What callbacks and statistics give: plain tuples with names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from .errors import RnetError

if TYPE_CHECKING:
    from ._rnet import Sample
    from .compare import PublishedType


class MatchEvent(NamedTuple):
    """A change in who is matched with a publisher or subscriber."""

    #: "matched": a peer has joined and is served; "unmatched": it has closed its end;
    #: "lost": its process has died; "incompatible": it does not fit, see ``error``; "changed": it stands for
    #: more or fewer subscribers of another host.
    kind: Literal["matched", "unmatched", "lost", "incompatible", "changed", "other"]
    #: Name of the peer's node.
    node: str | None
    #: Id of the peer's publisher or subscription.
    id: int | None
    #: Why a peer is incompatible: IncompatibleType or IncompatibleQos.
    error: RnetError | None


class DeadlineMissed(NamedTuple):
    """Periods of a deadline in which a publisher sent nothing."""

    #: Name of the publisher's node.
    node: str
    #: Id of the publisher.
    id: int
    #: Periods that have ended since the last such event, 1 or more.
    missed: int
    #: All of this publisher so far.
    total: int


class Liveliness(NamedTuple):
    """How many of a subscriber's publishers are alive."""

    #: Publishers that are there and alive.
    alive: int
    #: Publishers that are there and have not shown that they are alive for longer than their lease.
    not_alive: int


class LivelinessChange(NamedTuple):
    """A publisher has become alive, or is so no more."""

    #: Name of the publisher's node.
    node: str
    #: Id of the publisher.
    id: int
    #: Whether it is alive now. One that has left or died is not, and is in neither count.
    alive: bool
    #: The publishers that are there, after the change.
    counts: Liveliness


class NodeEvent(NamedTuple):
    """A change in which nodes there are."""

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
    #: Name of its node; "@host/node" for one of another host, for which a node of this host stands.
    node: str
    #: The type of its messages, as ``rnet topic info --json`` shows it: ``kind`` is "raw", "plain" or "protobuf".
    type: dict[str, Any]
    #: What it offers or asks for, as ``rnet topic info --json`` shows it.
    qos: dict[str, Any]
    #: How many endpoints it stands for: 1, or more for subscribers of another host.
    ends: int


class EndpointEvent(NamedTuple):
    """A change in which publishers and subscribers there are."""

    #: "opened": it exists; "closed": it was closed, or its node has left; "lost": its process has died.
    #: "changed": a proxy stands for more or fewer, see ``Endpoint.ends``.
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

    #: Its number in the schedule: 1 is due one period after the start. Skipped ones count.
    number: int
    #: When it was due, in ns of the time of the node that the timer or rate was made of, ``Node.now()``; of a
    #: ``rnet.Rate(hz)``, of ``rnet.now_ns()``. After a jump of a simulated time it is counted back from the new
    #: time, to 0 at the least.
    due_ns: int
    #: How much later it was taken, in seconds.
    late_s: float
    #: How many ticks were skipped since the last one that was taken.
    missed: int


class Behind(NamedTuple):
    """Messages that were sent and that a subscriber has not taken yet."""

    #: How many they are. Those that the log no longer holds are among them until the subscriber
    #: looks and counts them.
    messages: int
    #: How long ago the oldest of them that is still there was sent, in seconds.
    age_s: float


class Origin(NamedTuple):
    """The message that another one forwards."""

    #: Id of the host on which it was sent.
    host: int
    #: Id of the publisher that sent it.
    publisher: int
    #: Its number at that publisher, counted from 0.
    seq: int


class KnownGap(NamedTuple):
    """Messages that their publisher knows to be missing."""

    #: Why they are missing.
    cause: Literal["overrun", "link", "restart", "detached"]
    #: How many they are.
    size: int


class PublisherStats(NamedTuple):
    """What a subscriber knows of one publisher."""

    #: The publisher's id, as in ``Sample.publisher``. A subscriber with a callback adds up all
    #: publishers that are gone in one entry, with 0 here.
    publisher: int
    #: Name of its node.
    node: str
    #: Messages received from it.
    received: int
    #: Messages lost, by cause: "overrun", "link", "restart", "detached".
    lost: dict[str, int]
    #: Whether it is still there.
    connected: bool
    #: Messages received from it that were no messages of the topic's type.
    malformed: int
    #: Messages that this subscriber skipped: older than the last that it keeps, or than the newest
    #: that ``latest`` gave.
    skipped: int
    #: Messages not taken yet.
    behind: Behind
    #: Messages not delivered because they were older than the publisher's lifespan; neither lost nor skipped.
    expired: int
    #: Periods of the subscriber's deadline in which the publisher sent nothing.
    deadline_missed: int


class WallOffset(NamedTuple):
    """How far the wall clock of the host is ahead of ``rnet.now_ns()``."""

    #: What has to be added to ``rnet.now_ns()`` for ns since 1970-01-01 UTC.
    offset_ns: int
    #: By how much the offset may be wrong either way, in ns.
    uncertainty_ns: int


class CommandStats(NamedTuple):
    """What a receiver of commands has done so far; from ``Command.stats``."""

    #: Commands that were applied.
    applied: int
    #: Commands that were older than the deadline when they came, or when they could be applied.
    late: int
    #: Commands that had been applied before, or after which a later one had.
    repeated: int
    #: Commands of drivers whose authority had ended.
    superseded: int
    #: Commands of nodes that never had the authority they claimed.
    unauthorised: int
    #: Commands that are no message of the type.
    malformed: int
    #: Commands that were passed over because a newer one of the driver was there, or were lost on their way.
    passed_over: int
    #: How often it has fallen back, the opening and the closing not counted.
    fallbacks: int
    #: Exceptions of the functions that apply commands or fallbacks.
    panics: int
    #: Commands that took longer to apply than the deadline.
    overruns: int


class PushStats(NamedTuple):
    """What became of the jobs of a pusher; from ``Pusher.stats``."""

    #: Jobs that were taken by ``push``.
    pushed: int
    #: Jobs that a worker has acknowledged.
    done: int
    #: Jobs that were sent to a second worker.
    redelivered: int
    #: Jobs that were handed back, for whatever reason.
    undelivered: int
    #: Jobs that are not done yet, those that wait for a worker included.
    open: int


class Undelivered(NamedTuple):
    """A job that was handed back: nobody has acknowledged it."""

    #: What was pushed.
    job: Any
    #: Why: CallFailed with what its worker said; ServerLost, CallLost, Timeout or Cancelled if two workers had it and
    #: neither acknowledged it; IncompatibleType if workers expect another type; Closed if the pusher was closed before.
    error: RnetError


class ServiceStats(NamedTuple):
    """What was asked of a server so far; from ``Service.stats``."""

    #: Requests that were taken, those that were refused not counted.
    calls: int
    #: Calls whose handler runs now.
    running: int
    #: Calls that wait for a handler now.
    waiting: int
    #: Calls that were refused because the backlog was full, and jobs that came while their worker closed.
    refused: int
    #: Calls whose handler raised.
    failed: int
    #: Calls that were cancelled, or whose caller was gone, before their handler had ended.
    cancelled: int
    #: Messages that no caller of this service sends: without a number, or with one that is open.
    malformed: int
    #: Answers that could not be sent: their caller was gone, or read nothing.
    unsent: int
    #: Requests that were dropped because the client that they name has no ends for answers: they are of no client, or
    #: of one whose ends were not found within 5 s.
    unanswerable: int


class ClientStats(NamedTuple):
    """What a client has asked so far; from ``Client.stats``."""

    #: Calls that were begun.
    calls: int
    #: Calls that are open now.
    open: int
    #: Answers that were dropped because their call had ended before.
    late: int
    #: Calls that were sent to another server because one refused.
    moved: int
    #: Messages of feedback that were passed over: more waited than are kept for their reader.
    skipped: int
    #: Messages of feedback that did not come: the server had no room for them because this client did not read, or
    #: they were lost on their way.
    unheard: int
