"""Encodes arrays and dictionaries of values as compressed bytes; Polars writes and reads the arrays as Arrow IPC."""

import io
import itertools
import zlib
from collections.abc import Iterable, Sequence
from sys import getsizeof
from typing import Any, Final

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

Array = NDArray[Any]
# The code of a missing value.
NONE: Final = -1
# Estimated overhead per value: list entry, dict entry and code.
_LOOKUP_BYTES: Final = 90
_INTEGER_TYPES: Final = (np.int8, np.int16, np.int32, np.int64)


def narrow(values: Array) -> Array:
    """Convert integers to the smallest type into which all fit."""
    if not values.size or values.dtype.kind == "u":
        return values
    low, high = int(values.min()), int(values.max())
    for kind in _INTEGER_TYPES:
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            return values.astype(kind, copy=False)
    return values


def encode(values: Array) -> bytes:
    content = io.BytesIO()
    pl.DataFrame({"v": narrow(values)}).write_ipc(content, compression="zstd")
    return content.getvalue()


def decode(content: bytes) -> Array:
    return pl.read_ipc(content)["v"].to_numpy()


class EncodedColumn(msgspec.Struct, array_like=True):
    """Compressed dictionary values, and compressed codes."""

    values: bytes
    codes: bytes


_encoded_column = msgspec.msgpack.Decoder(EncodedColumn)


def encode_coded(values: Sequence[Any], codes: Array) -> bytes:
    """Write only the values in use, and for each row the index of its value, or NONE."""
    used = np.unique(codes[codes >= 0])
    new_code = np.full(len(values) + 1, NONE, np.int32)
    new_code[used] = np.arange(used.size, dtype=np.int32)
    return encode_values([values[code] for code in used.tolist()], new_code[codes])


def encode_values(values: Sequence[Any], numbers: Array) -> bytes:
    """Write all values, and an array of numbers, such as codes of the values."""
    encoded_values = zlib.compress(msgspec.msgpack.encode(list(values)), 1)
    return msgspec.msgpack.encode(EncodedColumn(encoded_values, encode(numbers)))


def decode_coded(content: bytes) -> tuple[list[Any], Array]:
    column = _encoded_column.decode(content)
    return msgspec.msgpack.decode(zlib.decompress(column.values)), decode(column.codes)


class Dictionary:
    """Maps values to codes. A code never changes when values are added."""

    def __init__(self, values: Sequence[Any] = ()) -> None:
        self.values: list[Any] = list(values)
        self._codes: dict[Any, int] = {value: code for code, value in enumerate(self.values)}
        # How many values are included in `_bytes`, their size in memory.
        self._measured = 0
        self._bytes = 0

    def __len__(self) -> int:
        return len(self.values)

    def code(self, value: Any) -> int:
        """The code of a value, which is added if it is new; NONE if the value is None."""
        if value is None:
            return NONE
        code = self._codes.get(value)
        if code is None:
            code = self._codes[value] = len(self.values)
            self.values.append(value)
        return code

    def find(self, value: Any) -> int:
        return self._codes.get(value, NONE)

    def mask(self, values: Iterable[Any]) -> Array:
        """A mask of the codes of these values; its last element is false, so that NONE is not in the mask."""
        mask = np.zeros(len(self.values) + 1, bool)
        mask[[code for value in values if (code := self.find(value)) >= 0]] = True
        return mask

    def map(self, values: Sequence[Any]) -> Array:
        """The code of each value, which is added if it is new; the last element is NONE, so that code -1 maps to
        NONE."""
        codes_by_value = self._codes
        codes = [codes_by_value.setdefault(value, len(codes_by_value)) for value in values]
        self.values += itertools.islice(codes_by_value, len(self.values), None)
        return np.array([*codes, NONE], np.int32)

    @property
    def nbytes(self) -> int:
        """The size of the values in memory, and an estimate of the lookup table."""
        self._bytes += sum(map(getsizeof, itertools.islice(self.values, self._measured, None)))
        self._measured = len(self.values)
        return self._bytes + _LOOKUP_BYTES * self._measured
