"""The state of a domain: keys with values, which outlive the nodes that wrote them.

``Node.state`` is the :class:`State` of the node's domain, ``Node.state_of`` the :class:`RemoteState` of another host.
:data:`DELETE` as a last will or as the result of an update deletes the key.
"""

from __future__ import annotations

from ._rnet import Entry, RemoteState, Replica, State, Transaction, Watch
from .changes import Change, WithAge
from .mappings import Snapshot, StateHash
from .state_values import DELETE

__all__ = [
    "DELETE",
    "Change",
    "Entry",
    "RemoteState",
    "Replica",
    "Snapshot",
    "State",
    "StateHash",
    "Transaction",
    "Watch",
    "WithAge",
]
