"""Runs a `regulars` command in a process of the fork server."""

import os
import sys
import warnings
from collections.abc import Sequence

from regulars.cli import serve, worker
from regulars.cli.main import main as regulars

# The fork server imports these once for all its processes.
PRELOADED = (serve, worker)


def main(arguments: Sequence[str], _descriptors: Sequence[int]) -> None:
    if os.environ.get("PYTHONWARNINGS") == "error":
        warnings.simplefilter("error")
    sys.argv = ["regulars", *arguments]
    regulars()
