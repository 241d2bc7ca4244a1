"""A command of ours as a process that the nursery starts."""

import sys
from collections.abc import Sequence

from regulars.cli.main import main as regulars


def main(arguments: Sequence[str], _descriptors: Sequence[int]) -> None:
    sys.argv = ["regulars", *arguments]
    regulars()
