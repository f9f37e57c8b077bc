"""The network parameters of a worker: bench/harness/src/net.rs and `Topic` of system.rs."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

_FIND_S = 10.0


@dataclass(frozen=True)
class Topic:
    """A topic as one endpoint sees it."""

    name: str
    profile: str
    lane: str
    max_len: int
    publishers: int
    subscribers: int
    index: int

    @property
    def throughput(self) -> bool:
        """As many messages as possible, none lost; otherwise each as soon as possible."""
        return self.profile == "throughput"

    def depth(self, byte_budget: int = 64 << 20, most: int = 100_000) -> int:
        """A queue length that keeps small messages flowing and large ones within the budget."""
        return max(16, min(most, byte_budget // max(self.max_len, 1)))


@dataclass(frozen=True)
class Net:
    """Shared addresses and directories of one run."""

    dir: Path
    number: int
    broker_port: int | None

    @property
    def tag(self) -> str:
        """A name that no other run has: letters, digits, `-` and `_`.

        Another comparison may use the same number at the same time, so what all processes of the
        machine share is named by this.
        """
        return self.dir.name

    @classmethod
    def from_spec(cls, spec: dict) -> Net:
        """The net of a specification."""
        return cls(Path(spec["dir"]), spec["number"], spec.get("broker_port"))

    def port(self) -> int:
        """The server's port."""
        if self.broker_port is None:
            raise RuntimeError("this run has started no server")
        return self.broker_port

    def announce(self, topic: Topic, address: str) -> None:
        """Lets subscribers know where this publisher listens."""
        name = f"{topic.name}.{topic.index}.at"
        hidden = self.dir / f".{name}.new"
        hidden.write_text(address)
        os.replace(hidden, self.dir / name)

    def find(self, topic: Topic, publisher: int) -> str:
        """Waits for the announcement of a publisher of the topic."""
        path = self.dir / f"{topic.name}.{publisher}.at"
        deadline = time.monotonic() + _FIND_S
        while True:
            try:
                return path.read_text()
            except FileNotFoundError:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"nobody announced {path.name} within 10 s") from None
            time.sleep(0.001)  # sleep: a file has no condition to wait on

    def find_all(self, topic: Topic) -> list[str]:
        """The announcements of all publishers of the topic."""
        return [self.find(topic, publisher) for publisher in range(topic.publishers)]
