"""What this room refuses; each message is one sentence for the person who asked."""

from collections.abc import Sequence

from regulars.conditions.check import Fault


class SegmentError(Exception):
    """Base of all of them."""


class DefinitionRefused(SegmentError):
    """It cannot be read, or cannot be saved as it is."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        first = faults[0]
        more = f" ({len(faults) - 1} more)" if len(faults) > 1 else ""
        super().__init__(f"{first.place}: {first.message}{more}" if first.place else f"{first.message}{more}")
        self.faults = tuple(faults)


class SegmentNotFound(SegmentError):
    pass


class InUse(SegmentError):
    """Something still asks for the segment."""
