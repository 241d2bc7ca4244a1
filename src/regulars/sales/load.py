"""Load many sales at once by COPY, for data that is known to be new and valid, such as demo data.

The function writes the rows that `record_sales` would write, with the events (facts) about new sales. The caller has
created the stores and the profiles.
"""

from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Any, Final
from uuid import UUID

from regulars.kit.arrays import Jsons, Labels, Texts
from regulars.kit.db import Tx
from regulars.kit.ids import Reference, new_uuids_since
from regulars.sales.facts import SalesRecorded
from regulars.sales.model import Sale
from regulars.sales.statements import COLUMNS, SALE_COLUMNS
from regulars.work import outbox

# Rows are sent in chunks of this size, because a call for each row would cost more than the row itself.
CHUNK_BYTES: Final = 1 << 18
# As many sales as in two batch requests, so that listeners get no larger events than otherwise.
SALES_PER_FACT: Final = 1000
_NULL: Final = "\\N"


async def load_sales(
    tx: Tx,
    organization_id: UUID,
    sales: Iterable[Sale],
    *,
    stores: Mapping[Reference, UUID],
    profiles: Mapping[Reference, UUID],
) -> int:
    """Copy the sales; return how many. A sale that exists already fails the whole transaction."""
    row_start = f"{organization_id.hex}\t{tx.now}"
    size = 0
    rows: list[str] = []
    ids: list[UUID] = []
    keys: set[str] = set()
    async with tx.connection.cursor().copy(
        "COPY sales_events (organization_id, created_at, profile_id, " + COLUMNS + ") FROM STDIN"
    ) as copy:
        for sale, identifier in zip(sales, new_uuids_since(tx.now), strict=False):
            # Hexadecimal digits without hyphens: the fastest form of an id that PostgreSQL accepts.
            profile = _NULL if sale.profile is None else profiles[sale.profile].hex
            fields = "\t".join([_NULL if (value := get(sale)) is None else write(value) for get, write in _FIELDS])
            row = f"{row_start}\t{profile}\t{identifier.hex}\t{stores[sale.store].hex}\t{fields}\n"
            rows.append(row)
            ids.append(identifier)
            keys.update(sale.property_keys)
            size += len(row)
            if size > CHUNK_BYTES:
                await copy.write("".join(rows))
                rows.clear()
                size = 0
        await copy.write("".join(rows))
    for first in range(0, len(ids), SALES_PER_FACT):
        fact = SalesRecorded(ids[first : first + SALES_PER_FACT], tuple(sorted(keys)))
        await outbox.record(tx, organization_id, [fact])
    return len(ids)


def _escape_json(text: bytes) -> str:
    # JSON has no raw control characters, so only backslashes must be escaped for COPY.
    return text.decode().replace("\\", "\\\\")


def _escape_text(value: str) -> str:
    if "\\" in value or not value.isprintable():
        value = value.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")
    return value


_ESCAPES: Final[Mapping[Any, Callable[[Any], str]]] = {Texts: _escape_text, Labels: _escape_text, Jsons: _escape_json}
_FIELDS: Final = [(attrgetter(name), _ESCAPES.get(array, str)) for name, array in SALE_COLUMNS.kinds.items()]
