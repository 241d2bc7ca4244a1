"""Write a batch of rows with one statement, which gets one array for each column.

`Columns` lists the columns once. It gives the names and types for the text of the statement, and the arrays for its
parameters.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache
from operator import attrgetter
from typing import Any, Final, LiteralString

from regulars.kit.arrays import BinaryArray


class Columns:
    """The array class of each column, by name. The values are the rows' attributes of the same name.

    In a tuple, the second element is the path of another attribute, or a function that converts the value:
    `Columns(id=Ids, source=(Labels, "event.source"), detail=(Jsons, encode))`. Integer columns of any size use
    `Bigints`: PostgreSQL converts and checks the value when it is stored.
    """

    def __init__(self, **columns: type[BinaryArray] | tuple[type[BinaryArray], str | Callable[[Any], Any]]) -> None:
        self.kinds: Final = {
            name: source[0] if isinstance(source, tuple) else source for name, source in columns.items()
        }
        sources = {name: source[1] for name, source in columns.items() if isinstance(source, tuple)}
        paths = [path if isinstance(path := sources.get(name), str) else name for name in columns]
        self.read: Final = attrgetter(*paths) if len(paths) > 1 else lambda row, get=attrgetter(*paths): (get(row),)
        # For each column, the function that makes an array of its values.
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

    def __or__(self, other: "Columns") -> "Columns":
        """Combine the columns of two lists in one statement; each list still makes its own parameters."""
        return Columns(**self.kinds, **other.kinds)

    def write(self, text: LiteralString, **replacements: LiteralString) -> LiteralString:
        """Fill in a statement: `{columns}` are the names, `{arrays}` the `unnest(…)` of all arrays, and `{rows}` the
        same as a table called `it`.

        `{records}` is that table from a parameter `records`, a list of JSON objects, which is faster for rows that are
        encoded as JSON anyway. Keywords replace further placeholders, for example by the result of `assign`.
        """
        return fill(text, columns=self.names, arrays=self.arrays, rows=self.rows, records=self.records, **replacements)

    def assign(self, source: LiteralString, *, without: Collection[str] = ()) -> LiteralString:
        """Write the assignments of `SET`: each column, except `without`, from the same column of the source."""
        return ", ".join([name + " = " + source + "." + name for name in self.kinds if name not in without])

    def of(self, rows: Iterable[Any]) -> dict[str, BinaryArray]:
        """Return the parameters of the statement for these rows."""
        return self.of_tuples(map(self.read, rows))

    def of_tuples(self, rows: Iterable[Sequence[Any]]) -> dict[str, BinaryArray]:
        """Like `of`, for rows that are tuples in the order of the columns."""
        # `zip` without its check of lengths, because every write passes here.
        arrays = {name: make(values) for name, make, values in zip(self.kinds, self.makers, zip(*rows))}  # noqa: B905
        return arrays or {name: kind(()) for name, kind in self.kinds.items()}


def _converting(kind: type[BinaryArray], convert: Callable[[Any], Any]) -> Callable[[Iterable[Any]], BinaryArray]:
    return lambda values: kind([convert(value) for value in values])


@cache
def names_of(row: Callable[..., Any], table: LiteralString = "") -> LiteralString:
    """Join the names of a table's columns, which are the fields of a `NamedTuple`, struct or dataclass."""
    fields: Sequence[LiteralString] = getattr(row, "__struct_fields__", ())
    fields = fields or row.__match_args__  # type: ignore[attr-defined]  # the row is a class
    return ", ".join([table + "." + name if table else name for name in fields])


def fill(text: LiteralString, **replacements: LiteralString) -> LiteralString:
    """Replace each named placeholder of a statement by the SQL given for it."""
    for name, replacement in replacements.items():
        text = text.replace("{" + name + "}", replacement)
    return text
