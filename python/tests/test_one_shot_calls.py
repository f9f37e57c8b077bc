"""`Node.call`: calls of one node share a client."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import pytest
import rnet
from conftest import LIMIT_S


def test_one_shot_calls_share_a_client_of_the_node(node):
    server, caller = node("server"), node("caller")
    service = server.service("/echo", None, None, lambda request: request)

    def call(number: int) -> bool:
        request = b"%d" % number
        return caller.call("/echo", request, timeout=LIMIT_S) == request

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(call, range(160)))
    before = len(os.listdir("/proc/self/fd"))
    assert all(map(call, range(20)))
    # A leak would leave two descriptors per client in the server. Other threads may have some open now.
    assert len(os.listdir("/proc/self/fd")) < before + 20
    caller.close()
    with pytest.raises(rnet.ClosedError):
        caller.call("/echo", b"x")
    service.close()
