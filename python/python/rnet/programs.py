"""The program ``rnet``, which the package contains and some of its functions run."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from pathlib import Path

#: Instructions if :func:`find` does not find a program.
MISSING = "the program rnet is not installed; install the robot-net package, or run `make build`"


def find() -> str | None:
    """The program that was installed with the package, or else one in the path."""
    beside = {Path(sys.executable).parent, Path(sysconfig.get_path("scripts"))}
    return shutil.which("rnet", path=os.pathsep.join(map(str, beside))) or shutil.which("rnet")
