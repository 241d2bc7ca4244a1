"""A command of ours as a process that the nursery starts."""

import os
import sys
import warnings
from collections.abc import Sequence

from regulars.cli import serve, worker
from regulars.cli.main import main as regulars

# Imported once by the nursery, so that the processes it starts need not do it.
PRELOADED = (serve, worker)


def main(arguments: Sequence[str], _descriptors: Sequence[int]) -> None:
    if os.environ.get("PYTHONWARNINGS") == "error":
        warnings.simplefilter("error")
    sys.argv = ["regulars", *arguments]
    regulars()
