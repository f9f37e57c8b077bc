"""A node starts the link between hosts, whose program is next to the Python executable."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

LIMIT_S = 60

PROGRAM = """
import sys
import rnet

sys.executable = sys.argv[1]
with rnet.Node("lidar", domain="t"):
    sys.stdin.read()
"""


def test_the_link_is_found_beside_python(tmp_path: Path) -> None:
    said = tmp_path / "said"
    link = tmp_path / "rnet-link"
    link.write_text(f'#!/bin/sh\necho "$*" > {said}.draft && mv {said}.draft {said}\n')
    link.chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RNET_")}
    environment |= {"RNET_NETWORK": "lan", "RNET_DIR": str(tmp_path), "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "python3")]
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE) as node:
        until = time.monotonic() + LIMIT_S
        while not said.exists():
            assert time.monotonic() < until and node.poll() is None, "no link is started"
            time.sleep(0.01)  # sleep: between two checks of a condition
        assert said.read_text() == "start --domain t\n"
        node.communicate()
    assert node.returncode == 0
