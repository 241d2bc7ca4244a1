"""Encode PostgreSQL arrays in the binary wire format, one class for each element type.

The driver converts a list element by element, which costs more than the statement itself on the hot path. Each class
here encodes its values when it is created, and the driver sends the bytes unchanged.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from struct import Struct
from typing import Any, ClassVar, Final, LiteralString
from uuid import UUID

import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format

# Number of dimensions, whether there may be nulls, type of the elements, number of elements, index of the first.
_HEADER = Struct(">iiIii")
_LENGTH = Struct(">i")
# The length of a value (8 bytes), and the value.
_INT8 = Struct(">iq")
_LONG = Struct(">q")
_pack_header = _HEADER.pack
_pack_length = _LENGTH.pack
_NULL = _pack_length(-1)
# PostgreSQL counts time in microseconds since the year 2000.
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_UUID_LENGTH = _pack_length(16)
_BOOLEANS = {True: _pack_length(1) + b"\x01", False: _pack_length(1) + b"\x00", None: _NULL}


def _join(element_oid: int, elements: list[bytes]) -> bytes:
    # One dimension. The flag says that there may be nulls; PostgreSQL checks each element.
    return _pack_header(1, 1, element_oid, len(elements), 1) + b"".join(elements)


class BinaryArray:
    """A one-dimensional array as PostgreSQL receives it."""

    __slots__ = ("payload",)
    # The SQL name of the element's type; below, PostgreSQL's numbers (oids) of the array's and the element's type.
    type: ClassVar[LiteralString]
    oid: ClassVar[int]
    element_oid: ClassVar[int]
    payload: bytes

    def __init__(self, values: Iterable[Any]) -> None:
        raise NotImplementedError


class Texts(BinaryArray):
    __slots__ = ()
    type, oid, element_oid = "text", 1009, 25

    def __init__(self, values: Iterable[str | None]) -> None:
        self.payload = _join(
            self.element_oid,
            [_NULL if value is None else _pack_length(len(text := value.encode())) + text for value in values],
        )


class Labels(BinaryArray):
    """Texts with many repeated values: each distinct text is encoded only once."""

    __slots__ = ()
    type, oid, element_oid = Texts.type, Texts.oid, Texts.element_oid

    def __init__(self, values: Collection[str | None]) -> None:
        encoded = {
            value: _NULL if value is None else _pack_length(len(text := value.encode())) + text for value in set(values)
        }
        self.payload = _join(self.element_oid, [encoded[value] for value in values])


class Blobs(BinaryArray):
    __slots__ = ()
    type, oid, element_oid = "bytea", 1001, 17

    def __init__(self, values: Iterable[bytes | None]) -> None:
        self.payload = _join(
            self.element_oid, [_NULL if value is None else _pack_length(len(value)) + value for value in values]
        )


class Jsons(Blobs):
    """JSON documents that are already encoded as bytes."""

    __slots__ = ()
    type, oid, element_oid = "json", 199, 114


class Jsonbs(BinaryArray):
    """JSON documents that are already encoded as bytes, for columns of type jsonb."""

    __slots__ = ()
    type, oid, element_oid = "jsonb", 3807, 3802

    def __init__(self, values: Iterable[bytes | None]) -> None:
        elements = [_NULL if value is None else _pack_length(len(value) + 1) + b"\x01" + value for value in values]
        self.payload = _join(self.element_oid, elements)


class JsonTexts(Texts):
    """JSON documents that are already encoded as `str`."""

    __slots__ = ()
    type, oid, element_oid = Jsons.type, Jsons.oid, Jsons.element_oid


class Uuids(BinaryArray):
    """UUIDs that are given as sixteen bytes each."""

    __slots__ = ()
    type, oid, element_oid = "uuid", 2951, 2950

    def __init__(self, values: Iterable[bytes | None]) -> None:
        self.payload = _join(self.element_oid, [_NULL if value is None else _UUID_LENGTH + value for value in values])


class Ids(BinaryArray):
    """UUIDs that are given as `UUID` objects."""

    __slots__ = ()
    type, oid, element_oid = Uuids.type, Uuids.oid, Uuids.element_oid

    def __init__(self, values: Iterable[UUID | None]) -> None:
        self.payload = _join(
            self.element_oid, [_NULL if value is None else _UUID_LENGTH + value.bytes for value in values]
        )


class Bigints(BinaryArray):
    __slots__ = ()
    type, oid, element_oid = "bigint", 1016, 20

    def __init__(self, values: Iterable[int | None]) -> None:
        self.payload = _join(self.element_oid, [_NULL if value is None else _INT8.pack(8, value) for value in values])


class Timestamps(BinaryArray):
    __slots__ = ()
    type, oid, element_oid = "timestamptz", 1185, 1184

    def __init__(self, values: Iterable[datetime | None]) -> None:
        self.payload = _join(
            self.element_oid,
            [_NULL if value is None else _INT8.pack(8, (value - _EPOCH) // _MICROSECOND) for value in values],
        )


class Booleans(BinaryArray):
    __slots__ = ()
    type, oid, element_oid = "boolean", 1000, 16

    def __init__(self, values: Iterable[bool | None]) -> None:
        self.payload = _join(self.element_oid, [_BOOLEANS[value] for value in values])


def encode_timestamp(value: datetime) -> bytes:
    """Encode a single timestamp as PostgreSQL's binary format has it."""
    return _LONG.pack((value - _EPOCH) // _MICROSECOND)


# Encode a single value, not null, as PostgreSQL receives it outside of an array, by the class of its arrays.
SINGLE_ENCODERS: Final[Mapping[type[BinaryArray], Callable[[Any], bytes]]] = {
    Texts: str.encode,
    Labels: str.encode,
    Jsons: bytes,
    Uuids: bytes,
    Bigints: _LONG.pack,
    Timestamps: encode_timestamp,
}


def read_timestamp(payload: bytes) -> datetime:
    return _EPOCH + _MICROSECOND * read_bigint(payload)


def read_bigint(payload: bytes) -> int:
    return int.from_bytes(payload, "big", signed=True)


def read_uuids(payload: bytes) -> list[bytes | None]:
    """Decode an array of UUIDs into sixteen bytes for each element."""
    # Without nulls, each element has 20 bytes: 4 of its length and 16 of its value.
    if _NULL not in payload:
        return [payload[end - 16 : end] for end in range(_HEADER.size + 20, len(payload) + 1, 20)]
    elements: list[bytes | None] = []
    offset = _HEADER.size
    while offset < len(payload):
        end = offset + 4
        if payload[offset:end] == _NULL:
            elements.append(None)
        else:
            end += 16
            elements.append(payload[end - 16 : end])
        offset = end
    return elements


def register(adapters: psycopg.adapt.AdaptersMap) -> None:
    """Register the array classes with the adapters of a connection."""
    for array in (Texts, Labels, JsonTexts, Jsons, Jsonbs, Blobs, Uuids, Ids, Bigints, Timestamps, Booleans):
        adapters.register_dumper(array, type(f"{array.__name__}Dumper", (_PayloadDumper,), {"oid": array.oid}))


class _PayloadDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: BinaryArray) -> bytes:
        return obj.payload
