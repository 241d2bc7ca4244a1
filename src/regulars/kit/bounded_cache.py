"""The cache for values that were loaded or computed: a dictionary with a limit, of entries or of bytes.

For results of a pure function of short arguments there is `functools.lru_cache`.
"""

from collections.abc import Callable, Mapping
from typing import Final, Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class BoundedCache(Generic[Key, Value]):
    """When it is full, it drops the entries that were added or found least recently."""

    __slots__ = ("_bytes_of", "_entries", "_size_max", "entries", "nbytes")

    def __init__(self, size_max: int, *, bytes_of: Callable[[Value], int] | None = None) -> None:
        """`size_max` is a number of entries, or of bytes if `bytes_of` measures the values."""
        self._entries: dict[Key, Value] = {}
        self._size_max: Final = size_max
        self._bytes_of: Final = bytes_of
        self.nbytes = 0
        # For hot paths: it costs no more than any dictionary, and to read an entry here does not count as finding it.
        self.entries: Final[Mapping[Key, Value]] = self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def find(self, key: Key) -> Value | None:
        """Return the value of the key and count the entry as just used."""
        value = self._entries.get(key)
        if value is not None:
            # The newest entry of a dictionary is the last one.
            del self._entries[key]
            self._entries[key] = value
        return value

    def find_or_add(self, key: Key, compute: Callable[[], Value]) -> Value:
        value = self.find(key)
        return self.add(key, compute()) if value is None else value

    def add(self, key: Key, value: Value) -> Value:
        """Add or replace a value. It is added even if it alone exceeds the limit."""
        entries = self._entries
        if self._bytes_of is not None:
            self.drop(key)
            nbytes = self._bytes_of(value)
            self.nbytes += nbytes
            if self.nbytes > self._size_max:
                self.drop_oldest(self.nbytes - self._size_max)
        elif key in entries:
            del entries[key]
        elif len(entries) >= self._size_max:
            del entries[next(iter(entries))]
        entries[key] = value
        return value

    def drop(self, key: Key) -> None:
        if key in self._entries:
            value = self._entries.pop(key)
            self.nbytes -= 0 if self._bytes_of is None else self._bytes_of(value)

    def drop_oldest(self, bytes_min: int) -> int:
        """Drop the entries that were added or found least recently, until they had this many bytes; return how many
        they had. One pass finds all of them: each search for the first entry would skip those dropped before."""
        dropped: list[Key] = []
        nbytes = 0
        for key, value in self._entries.items():
            if nbytes >= bytes_min or self._bytes_of is None:
                break
            dropped.append(key)
            nbytes += self._bytes_of(value)
        for key in dropped:
            del self._entries[key]
        self.nbytes -= nbytes
        return nbytes

    def clear(self) -> None:
        self._entries.clear()
        self.nbytes = 0
