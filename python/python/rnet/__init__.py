"""robot-net: the communication core of a robot, without a server.

Nodes publish and subscribe to topics; on one host messages travel through shared memory::

    import rnet                                 # talker.py
    pub = rnet.Node("talker").publisher("/hello")
    pub.wait_for_subscribers()
    pub.send(b"hello, robot")

    import rnet                                 # listener.py
    for message in rnet.Node("listener").subscribe("/hello"):
        print(bytes(message))

There is nothing to start first, and nothing to end: a program that ends leaves its domain. Waits
let other threads run, and Ctrl-C ends them.

Names: :class:`Node` makes :class:`Publisher` and :class:`Subscriber`; these give :class:`Loan` and
:class:`Sample`. :class:`Merge` receives from many subscribers, :class:`WaitSet` waits for these, changes
of the state and ticks at once. :class:`RnetError` and what derives from it stands in :mod:`rnet.errors`, message types in :mod:`rnet.types`.
"""

from ._rnet import (
    ERROR_CODES,
    LAYOUT_VERSION,
    VERSION,
    CallbackHandle,
    Change,
    Entry,
    Loan,
    Merge,
    Node,
    Param,
    Publisher,
    Rate,
    Sample,
    Samples,
    Snapshot,
    State,
    StateHash,
    Subscriber,
    Timer,
    Transaction,
    WaitSet,
    Watch,
    now_ns,
    wall_offset,
)
from . import msgs
from .compare import PublishedType, TypeChange, Verdict, check
from .errors import (
    BadName,
    BadQos,
    BadValue,
    CallFailed,
    Cancelled,
    Closed,
    Conflict,
    Corrupt,
    Detached,
    Full,
    IncompatibleQos,
    IncompatibleType,
    Interrupted,
    Io,
    LayoutVersion,
    LimitReached,
    Malformed,
    MessageTooLarge,
    MissingNumpy,
    MissingProtobuf,
    NameTaken,
    NoPermission,
    NotHeard,
    OutOfMemory,
    ParamRefused,
    PeerLost,
    Refused,
    RnetError,
    SchemaError,
    ServerLost,
    StateType,
    Storage,
    Timeout,
    TooManyPins,
)
from .events import (
    AnyMessage,
    Behind,
    DeadlineMissed,
    Endpoint,
    EndpointEvent,
    KnownGap,
    Liveliness,
    LivelinessChange,
    MatchEvent,
    NodeEvent,
    Origin,
    PublisherStats,
    Tick,
    WallOffset,
)
from .protos import Protos, load, load_set, load_text
from .qos import Detach, Wait
from .state import DELETE
from .types import named

__version__ = VERSION

__all__ = [
    "DELETE",
    "ERROR_CODES",
    "LAYOUT_VERSION",
    "AnyMessage",
    "BadName",
    "BadQos",
    "BadValue",
    "CallFailed",
    "Cancelled",
    "Behind",
    "CallbackHandle",
    "Change",
    "Closed",
    "Conflict",
    "Corrupt",
    "DeadlineMissed",
    "Detach",
    "Detached",
    "Endpoint",
    "EndpointEvent",
    "Entry",
    "Full",
    "IncompatibleQos",
    "IncompatibleType",
    "Interrupted",
    "Io",
    "KnownGap",
    "LayoutVersion",
    "LimitReached",
    "Liveliness",
    "LivelinessChange",
    "Loan",
    "Malformed",
    "MatchEvent",
    "Merge",
    "MessageTooLarge",
    "MissingNumpy",
    "MissingProtobuf",
    "NameTaken",
    "NoPermission",
    "Node",
    "NodeEvent",
    "NotHeard",
    "Origin",
    "OutOfMemory",
    "Param",
    "ParamRefused",
    "PeerLost",
    "Refused",
    "Protos",
    "PublishedType",
    "Publisher",
    "PublisherStats",
    "Rate",
    "RnetError",
    "Sample",
    "Samples",
    "SchemaError",
    "ServerLost",
    "Snapshot",
    "State",
    "StateHash",
    "StateType",
    "Storage",
    "Subscriber",
    "Tick",
    "Timeout",
    "Timer",
    "TooManyPins",
    "Transaction",
    "TypeChange",
    "Verdict",
    "Wait",
    "WaitSet",
    "WallOffset",
    "Watch",
    "check",
    "load",
    "load_set",
    "load_text",
    "msgs",
    "named",
    "now_ns",
    "wall_offset",
]
