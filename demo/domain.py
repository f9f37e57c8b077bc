"""The demo's own domain: a directory that exists for one run."""

import fcntl
import os
import pathlib
import shutil

PREFIX = "demo_"


class Domain:
    """A domain named after this process. A context: removes the directory at its end."""

    def __init__(self):
        self.base = pathlib.Path(os.environ.get("RNET_DIR") or "/dev/shm")
        self.name = f"{PREFIX}{os.getpid()}"
        self.path = self.base / f"rnet-{os.geteuid()}-{self.name}"
        self._lock = None

    def environment(self):
        """Environment variables for the nodes."""
        # The matrices here are too small for numpy's threads.
        environment = {**os.environ, "RNET_DOMAIN": self.name, "OPENBLAS_NUM_THREADS": "1"}
        environment.pop("RNET_GROUP", None)  # the demo shares its domain with no other user
        return environment

    def hold(self):
        """Locks the directory, once a node has created it, as one in use: see `remove_stale`."""
        self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def remove_stale(self):
        """Removes directories left behind by demos whose run.py was killed."""
        for path in self.base.glob(f"rnet-{os.geteuid()}-{PREFIX}*"):
            pid = path.name.rpartition("_")[2]
            # A demo in another container may use the same directory with other process numbers, so both the
            # process and the lock must be gone.
            if pid.isdigit() and not pathlib.Path(f"/proc/{pid}").exists() and not _is_locked(path):
                shutil.rmtree(path, ignore_errors=True)

    def __enter__(self):
        self.remove_stale()
        return self

    def __exit__(self, *_):
        if self._lock is not None:
            os.close(self._lock)
        shutil.rmtree(self.path, ignore_errors=True)


def _is_locked(path):
    try:
        directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return False
    try:
        fcntl.flock(directory, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except OSError:
        return True
    finally:
        os.close(directory)
