"""Creates segments of a large organization, on columns in the state after a build and its merges."""

from uuid import UUID

from regulars.conditions.tree import All, Any, InSegment, Nothing
from regulars.kit.db import Database
from regulars.kit.ids import SEGMENT
from regulars.segments.definition import Definition
from regulars.segments.saved.manage import create_segment
from regulars.segments.suggestions import suggest_segments
from segment_columns import write_columns

BY = "bench"
# Days of history, as many as pages show.
SIZES = """
INSERT INTO segment_sizes (organization_id, segment_id, day, version, total, may_be_texted, counted_at)
SELECT organization_id, id, current_date - n, 1, 40000 + 97 * n, 21000 + 31 * n, now() - n * interval '1 day'
FROM segments CROSS JOIN generate_series(0, 89) AS n WHERE organization_id = %s
"""


async def fill_segments(database: Database, organization_id: UUID, *, customers: int, sales: int) -> None:
    """Writes the columns first, so that saving a segment starts no build."""
    await write_columns(database, organization_id, customers=customers, sales=sales)
    lapsed, best, unasked, returned = (start.definition for start in suggest_segments() if start.key != "birthday")
    async with database.transaction() as tx:
        for definition in (lapsed, best, unasked, returned):
            made = await create_segment(tx, organization_id, definition, created_by=BY)
        query = InSegment(id=SEGMENT.encode(made.row.id))
        nested = All(of=(best.match, Any(of=(unasked.match, Nothing(of=(lapsed.match, query))))))
        await create_segment(tx, organization_id, Definition(name="Three levels", match=nested), created_by=BY)
        await tx.execute(SIZES, (organization_id,))
