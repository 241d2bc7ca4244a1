"""The columns that a statement writes for each row of a batch, listed once.

A batch travels as one array for each column. From the list come the names and types in the statement and the arrays
themselves, so a column that is added is added in one place.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache
from operator import attrgetter
from typing import Any, Final, LiteralString

from regulars.kit.arrays import BinaryArray


class Columns:
    """The array class of each column, by name. The values are the rows' attributes of the same name.

    A second element names another attribute, or is a function that converts the value: `Columns(id=Ids, source=(Labels,
    "event.source"), detail=(Jsons, encode))`. Integer columns of any size use `Bigints`: PostgreSQL converts and checks
    the value when it is stored.
    """

    def __init__(self, **columns: type[BinaryArray] | tuple[type[BinaryArray], str | Callable[[Any], Any]]) -> None:
        self.kinds: Final = {
            name: source[0] if isinstance(source, tuple) else source for name, source in columns.items()
        }
        sources = {name: source[1] for name, source in columns.items() if isinstance(source, tuple)}
        paths = [path if isinstance(path := sources.get(name), str) else name for name in columns]
        self.read: Final = attrgetter(*paths) if len(paths) > 1 else lambda row, get=attrgetter(*paths): (get(row),)
        self.makers: Final = [
            _converting(kind, convert) if callable(convert := sources.get(name)) else kind
            for name, kind in self.kinds.items()
        ]
        self.names: Final[LiteralString] = ", ".join(self.kinds)
        self.arrays: Final[LiteralString] = (
            "unnest(" + ", ".join(["%(" + name + ")s::" + kind.type + "[]" for name, kind in self.kinds.items()]) + ")"
        )
        self.rows: Final[LiteralString] = self.arrays + " AS it (" + self.names + ")"
        typed: LiteralString = ", ".join([name + " " + kind.type for name, kind in self.kinds.items()])
        self.records: Final[LiteralString] = "json_to_recordset(%(records)s::json) AS it (" + typed + ")"

    def __or__(self, others: "Columns") -> "Columns":
        """Combine the columns for a statement; the parameters of each are still made separately."""
        return Columns(**self.kinds, **others.kinds)

    def write(self, text: LiteralString, **others: LiteralString) -> LiteralString:
        """Fill in a statement: `{columns}` are the names, `{arrays}` all rows, and `{rows}` the same as a table called
        `it`.

        `{records}` is that table from a parameter `records`, a list of JSON objects, which is faster for rows that are
        encoded as JSON anyway. Other placeholders are given by keyword, such as the result of `assign`.
        """
        return fill(text, columns=self.names, arrays=self.arrays, rows=self.rows, records=self.records, **others)

    def assign(self, source: LiteralString, *, without: Collection[str] = ()) -> LiteralString:
        """The assignments of `SET`: each column, except `without`, from the same column of the source."""
        return ", ".join([name + " = " + source + "." + name for name in self.kinds if name not in without])

    def of(self, rows: Iterable[Any]) -> dict[str, BinaryArray]:
        """The rows as parameters of the statement."""
        return self.of_tuples(map(self.read, rows))

    def of_tuples(self, rows: Iterable[Sequence[Any]]) -> dict[str, BinaryArray]:
        """Like `of`, for rows that are tuples in the order of the columns."""
        # Not a strict zip, because every write passes here.
        arrays = {name: make(values) for name, make, values in zip(self.kinds, self.makers, zip(*rows))}  # noqa: B905
        return arrays or {name: kind(()) for name, kind in self.kinds.items()}


def _converting(kind: type[BinaryArray], convert: Callable[[Any], Any]) -> Callable[[Iterable[Any]], BinaryArray]:
    return lambda values: kind([convert(value) for value in values])


@cache
def names_of(row: Callable[..., Any], table: LiteralString = "") -> LiteralString:
    """The names of a table's columns: the fields of a `NamedTuple` or struct."""
    fields: Sequence[LiteralString] = getattr(row, "__struct_fields__", ()) or row._fields  # type: ignore[attr-defined]
    return ", ".join([table + "." + name if table else name for name in fields])


def fill(text: LiteralString, **parts: LiteralString) -> LiteralString:
    """Replace the named placeholders of a statement by its parts."""
    for name, part in parts.items():
        text = text.replace("{" + name + "}", part)
    return text
