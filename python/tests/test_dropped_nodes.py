"""A node that is closed while it is used: its last handle is dropped without the GIL."""

from __future__ import annotations

import pytest
from conftest import finish

#: Closes the node in another thread while an argument is read. Meanwhile a callback runs, which needs the GIL
#: to return: a thread that holds the GIL and waits for the callback waits forever.
CLOSED_MEANWHILE = """
import inspect, sys, threading
import rnet

node = rnet.Node("closes")
entered, release = threading.Event(), threading.Event()


def on_node(event):
    entered.set()
    release.wait()


node.on_node(on_node)
other = rnet.Node("other")
entered.wait()
closing = threading.Thread(target=node.close)


def close():
    closing.start()
    # If the node has no other user, this is the last handle, and dropping it waits for the callback.
    closing.join(1)
    # No other thread gets the GIL before this one waits.
    sys.setswitchinterval(1000)
    release.set()


class Listed(list):
    def __iter__(self):
        close()
        raise ValueError("it cannot be read")


class Called:
    @property
    def __signature__(self):
        close()
        return inspect.Signature()

    def __call__(self):
        pass


try:
    if sys.argv[1] == "param":
        node.param("/gain", default=Listed([1.0]))
    else:
        node.command("/drive", bytes, lambda command: None, fallback=Called())
except (TypeError, ValueError) as error:
    print(error)
closing.join()
print("closed", node.closed)
"""


@pytest.mark.parametrize(
    ("use", "why"), [("param", "it cannot be read"), ("command", "does not take (reason)")]
)
def test_a_node_that_is_closed_while_an_argument_is_read_is_not_waited_for_with_the_interpreter(program, use, why):
    code, out, err = finish(program(CLOSED_MEANWHILE, use))
    assert code == 0, err
    first, last = out.splitlines()
    assert why in first and last == "closed True"
