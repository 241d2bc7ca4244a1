"""How far a question is with what it reads for the first time: whoever waits is shown it."""

from dataclasses import dataclass


@dataclass(slots=True)
class Reading:
    """How many values there are to read, and how many are read."""

    total: int = 0
    done: int = 0
