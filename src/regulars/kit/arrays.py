"""PostgreSQL arrays in their binary format, built by hand.

The driver dumps a list element by element through its adapters, which costs more than the statement itself on the hot
path. These classes carry finished bytes, and the driver passes them on.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from struct import Struct
from typing import ClassVar
from uuid import UUID

import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format

_HEADER = Struct(">iiIii")
_LENGTH = Struct(">i")
_INT8 = Struct(">iq")
_NULL = _LENGTH.pack(-1)
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_UUID_LENGTH = _LENGTH.pack(16)


class BinaryArray:
    """A one-dimensional array, ready for the wire."""

    __slots__ = ("payload",)
    oid: ClassVar[int]
    element_oid: ClassVar[int]

    def __init__(self, elements: list[bytes]) -> None:
        has_null = _NULL in elements
        self.payload = _HEADER.pack(1, has_null, self.element_oid, len(elements), 1) + b"".join(elements)


class Texts(BinaryArray):
    oid, element_oid = 1009, 25

    def __init__(self, values: Iterable[str | None]) -> None:
        super().__init__([_NULL if value is None else _sized(value.encode()) for value in values])


class Jsons(BinaryArray):
    """JSON documents as bytes."""

    oid, element_oid = 199, 114

    def __init__(self, values: Iterable[bytes | None]) -> None:
        super().__init__([_NULL if value is None else _sized(value) for value in values])


class Blobs(BinaryArray):
    oid, element_oid = 1001, 17

    def __init__(self, values: Iterable[bytes | None]) -> None:
        super().__init__([_NULL if value is None else _sized(value) for value in values])


class Uuids(BinaryArray):
    oid, element_oid = 2951, 2950

    def __init__(self, values: Iterable[UUID | None]) -> None:
        super().__init__([_NULL if value is None else _UUID_LENGTH + value.bytes for value in values])


class Bigints(BinaryArray):
    oid, element_oid = 1016, 20

    def __init__(self, values: Iterable[int | None]) -> None:
        super().__init__([_NULL if value is None else _INT8.pack(8, value) for value in values])


class Timestamps(BinaryArray):
    oid, element_oid = 1185, 1184

    def __init__(self, values: Iterable[datetime]) -> None:
        super().__init__([_INT8.pack(8, (value - _EPOCH) // _MICROSECOND) for value in values])


def _sized(value: bytes) -> bytes:
    return _LENGTH.pack(len(value)) + value


def register(adapters: psycopg.adapt.AdaptersMap) -> None:
    """Teach a connection to send these arrays."""
    for kind in (Texts, Jsons, Blobs, Uuids, Bigints, Timestamps):
        adapters.register_dumper(kind, type(f"{kind.__name__}Dumper", (_Finished,), {"oid": kind.oid}))


class _Finished(Dumper):
    format = Format.BINARY

    def dump(self, obj: BinaryArray) -> bytes:
        return obj.payload
