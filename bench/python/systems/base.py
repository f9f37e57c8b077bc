"""Base classes of the systems."""

from __future__ import annotations

from importlib.metadata import version


class System:
    """A system; see the package."""

    BROKER: str | None = None
    MAY_LOSE: str | None = None


class Publisher:
    """A publisher of a library that sends at once and lends no memory."""

    _scratch = bytearray()

    def send(self, message):
        """Sends one message; waits while the system has no capacity."""
        raise NotImplementedError

    def flush(self):
        """Hands over what `send` has collected."""

    def send_in_place(self, length: int, write, number: int):
        """Sends a message that `write(memory, number)` writes, in lent memory if available."""
        # One buffer for all messages, as a user of such a system keeps.
        if len(self._scratch) != length:
            self._scratch = bytearray(length)
        write(self._scratch, number)
        return self.send(self._scratch)

    def close(self):
        """Ends it."""


def installed(package: str) -> str:
    """A package and its version."""
    return f"{package} {version(package)}"
