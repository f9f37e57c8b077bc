"""robot-net: the communication core of a robot, without a server.

Nodes publish and subscribe to topics; on one host messages travel through shared memory::

    import rnet                                 # talker.py
    pub = rnet.Node("talker").publisher("/hello")
    pub.wait_for_subscribers()
    pub.send(b"hello, robot")

    import rnet                                 # listener.py
    for message in rnet.Node("listener").subscriber("/hello"):
        print(bytes(message))

No server has to be started, and no cleanup is needed: a program leaves its domain when it exits. Other
threads run while one waits, and Ctrl-C ends a wait.

:class:`Node` creates everything else: :class:`Publisher` and :class:`Subscriber`, :class:`Service` and
:class:`Client`, actions, commands, work queues, parameters and timers. :class:`Merge` receives from many
subscribers; :class:`WaitSet` waits for subscribers, state changes and ticks together. The other names are in
submodules, which ``import rnet`` imports:

- :mod:`rnet.errors`: :class:`RnetError`, its subclasses, and warnings
- :mod:`rnet.events`: arguments of callbacks, and statistics
- :mod:`rnet.launching`: a launched robot and its nodes
- :mod:`rnet.log`: the log of a node, and a handler for Python's ``logging``
- :mod:`rnet.msgs`: the built-in messages
- :mod:`rnet.recording`: recorders, and recordings to be read
- :mod:`rnet.state`: entries, changes, transactions and replicas of the state
- :mod:`rnet.types`: message types, their comparison, and ``.proto`` files
"""

from typing import TYPE_CHECKING

from ._rnet import (
    LAYOUT_VERSION,
    VERSION as __version__,
    ActionClient,
    ActionContext,
    Call,
    CallbackHandle,
    CallContext,
    Client,
    Command,
    Driver,
    Goal,
    Job,
    JobContext,
    Loan,
    Node,
    Param,
    Publisher,
    Puller,
    Pusher,
    Rate,
    Sample,
    Samples,
    Service,
    State,
    Subscriber,
    Timer,
    WaitSet,
    now_ns,
    wall_offset,
)
from . import _common, errors, events, hints, launching, log, msgs, one_shot, recording, state, types
from .errors import (
    CallCancelledError,
    CallFailedError,
    ClosedError,
    FullError,
    IncompatibleQosError,
    IncompatibleTypeError,
    PeerLostError,
    RnetError,
    ServerLostError,
    WaitTimeoutError,
)
from .launching import launch
from .merge import Merge
from .qos import Detach, Wait
from .recording import open_recording, record
from .types import load_proto

__all__ = [
    "LAYOUT_VERSION",
    "ActionClient",
    "ActionContext",
    "Call",
    "CallCancelledError",
    "CallContext",
    "CallFailedError",
    "CallbackHandle",
    "Client",
    "ClosedError",
    "Command",
    "Detach",
    "Driver",
    "FullError",
    "Goal",
    "IncompatibleQosError",
    "IncompatibleTypeError",
    "Job",
    "JobContext",
    "Loan",
    "Merge",
    "Node",
    "Param",
    "PeerLostError",
    "Publisher",
    "Puller",
    "Pusher",
    "Rate",
    "RnetError",
    "Sample",
    "Samples",
    "ServerLostError",
    "Service",
    "State",
    "Subscriber",
    "Timer",
    "Wait",
    "WaitSet",
    "WaitTimeoutError",
    "errors",
    "events",
    "launch",
    "launching",
    "load_proto",
    "log",
    "msgs",
    "now_ns",
    "open_recording",
    "record",
    "recording",
    "state",
    "types",
    "wall_offset",
]

if not TYPE_CHECKING:  # Type checkers would take every name for one that exists.

    def __getattr__(name: str) -> object:
        why = hints.no_name(name, (errors, events, launching, log, recording, state, types))
        if hints.is_from_import():
            raise ImportError(why, name=__name__)
        raise AttributeError(why, name=name)
