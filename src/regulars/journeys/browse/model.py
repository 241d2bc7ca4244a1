"""Versions as lists show them."""

from datetime import datetime
from typing import NamedTuple


class VersionRow(NamedTuple):
    version: int
    created_at: datetime
    created_by: str | None


class SpanRow(NamedTuple):
    """When a version was live."""

    version: int
    since: datetime
    until: datetime | None
