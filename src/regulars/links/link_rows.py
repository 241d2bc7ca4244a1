"""The SQL of short links, of clicks on them, and of the totals of clicks."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from psycopg.sql import SQL

from regulars.kit.arrays import Bigints, Ids, Labels, Texts, Timestamps
from regulars.kit.columns import Columns
from regulars.kit.db import Tx
from regulars.links.model import CODES_OF_ADDRESS_PER_MINUTE_MAX, CODES_PER_MINUTE_MAX, Click, ClickSource, LinkRow


async def find_prefix(tx: Tx, organization_id: UUID) -> str | None:
    return await tx.fetch_value("SELECT prefix FROM link_prefixes WHERE organization_id = %s", (organization_id,))


class SharedLink(NamedTuple):
    """Identifies a link that all recipients share."""

    origin_id: UUID
    step: str
    url: str
    origin_kind: str


_SHARED_COLUMNS: Final = Columns(origin_id=Ids, step=Texts, url=Texts, origin_kind=Labels)
_FIND_SHARED: Final = _SHARED_COLUMNS.write(
    """
    SELECT it.origin_id, it.step, it.url, it.origin_kind, links.code FROM {rows}
    CROSS JOIN LATERAL (
        SELECT code FROM links
        WHERE organization_id = %(organization_id)s AND origin_id = it.origin_id AND step = it.step AND url = it.url
          AND origin_kind = it.origin_kind AND personal_since IS NULL
        LIMIT 1
    ) AS links
    """
)


async def find_shared(tx: Tx, organization_id: UUID, links: Collection[SharedLink]) -> dict[SharedLink, str]:
    """The codes of shared links; a link that does not exist is absent."""
    rows = await tx.fetch(_FIND_SHARED, {"organization_id": organization_id, **_SHARED_COLUMNS.of_tuples(links)})
    return {SharedLink(*row[:4]): row[4] for row in rows}


_LINK_COLUMNS: Final = Columns(
    code=Labels, url=Texts, origin_kind=Labels, origin_id=Ids, step=Texts, personal_since=Timestamps, text_id=Ids,
    profile_id=Ids,
)  # fmt: skip
_INSERT_LINKS: Final = _LINK_COLUMNS.write(
    """
    INSERT INTO links (organization_id, created_at, {columns})
    SELECT %(organization_id)s, %(now)s, it.* FROM {rows}
    ON CONFLICT DO NOTHING
    RETURNING code
    """
)


async def insert_links_if_new(tx: Tx, organization_id: UUID, links: Sequence[LinkRow]) -> set[str]:
    """Insert links, except those whose code is taken, and shared links (of all recipients) that exist already; return
    the codes of the inserted links."""
    values = {"organization_id": organization_id, "now": tx.now, **_LINK_COLUMNS.of(links)}
    return set(await tx.fetch_column(_INSERT_LINKS, values))


async def find_links(tx: Tx, organization_id: UUID, codes: Collection[str]) -> dict[str, LinkRow]:
    links = await tx.fetch_all(
        LinkRow,
        "SELECT {columns} FROM links WHERE organization_id = %s AND code = ANY (%s::text[])",
        (organization_id, Texts(codes)),
    )
    return {link.code: link for link in links}


async def find_claim_times(tx: Tx, organization_id: UUID, text_ids: Collection[UUID]) -> dict[UUID, datetime]:
    """When a worker took each text to hand it to the provider."""
    return await tx.fetch_map(
        """
        SELECT id, claimed_at FROM texts
        WHERE organization_id = %s AND id = ANY (%s::uuid[]) AND claimed_at IS NOT NULL
        """,
        (organization_id, list(text_ids)),
    )


# The exact time, which is stored in `traced_at`, is deleted with the IP address and the user agent.
_CLICKS: Final = Columns(
    id=Ids, code=Labels, minute=Timestamps, traced_at=(Timestamps, "at"), address=Texts, agent=Texts,
    **{"class": (Labels, "class_")},
)  # fmt: skip
_INSERT_CLICKS: Final = _CLICKS.write(
    """
    INSERT INTO clicks (organization_id, {columns})
    SELECT %(organization_id)s, it.* FROM {rows}
    ON CONFLICT (organization_id, id) DO NOTHING
    RETURNING id
    """
)


async def insert_clicks_if_new(tx: Tx, organization_id: UUID, clicks: Sequence[Click]) -> set[UUID]:
    """Insert clicks, and return the ids of those that were inserted. Some may exist already, since clicks are written
    again if the result of a commit is unknown."""
    return set(await tx.fetch_column(_INSERT_CLICKS, {"organization_id": organization_id, **_CLICKS.of(clicks)}))


_SOURCE_COLUMNS: Final = Columns(address=Texts, agent=Texts, since=Timestamps, until=Timestamps)
_FIND_SCANNERS: Final = _SOURCE_COLUMNS.write(
    """
    SELECT DISTINCT it.address, CASE WHEN found.codes_of_address <= %(codes_of_address_max)s THEN it.agent END,
                    it.since, it.until
    FROM {rows}
    CROSS JOIN LATERAL (
        SELECT count(DISTINCT code) AS codes_of_address,
               count(DISTINCT code) FILTER (WHERE last.agent = it.agent) AS codes
        FROM (
            SELECT code, agent FROM clicks
            WHERE organization_id = %(organization_id)s AND address = it.address
              AND traced_at >= it.since AND traced_at <= it.until
            ORDER BY traced_at DESC
            LIMIT %(limit)s
        ) AS last
    ) AS found
    WHERE found.codes > %(codes_max)s OR found.codes_of_address > %(codes_of_address_max)s
    """
)


async def find_scanners(
    tx: Tx, organization_id: UUID, sources: Collection[ClickSource], *, limit: int
) -> list[ClickSource]:
    """The sources whose last clicks have too many different codes; without their user agent if all user agents of the
    address together have too many."""
    rows = await tx.fetch(
        _FIND_SCANNERS,
        {
            "organization_id": organization_id,
            "codes_max": CODES_PER_MINUTE_MAX,
            "codes_of_address_max": CODES_OF_ADDRESS_PER_MINUTE_MAX,
            "limit": limit,
            **_SOURCE_COLUMNS.of(sources),
        },
    )
    return [ClickSource(*row) for row in rows]


# Locked in the order of their ids: two processes that count clicks of one scanner never deadlock.
_RECLASSIFY: Final = _SOURCE_COLUMNS.write(
    """
    UPDATE clicks SET class = 'machine'
    WHERE organization_id = %(organization_id)s AND id = ANY (ARRAY(
        SELECT clicks.id FROM {rows}
        JOIN clicks ON clicks.organization_id = %(organization_id)s AND clicks.address = it.address
            AND (it.agent IS NULL OR clicks.agent = it.agent)
            AND clicks.traced_at >= it.since AND clicks.traced_at <= it.until AND clicks.class = 'person'
        ORDER BY clicks.id
        FOR UPDATE OF clicks
    ))
    RETURNING code, minute
    """
)


async def mark_as_machines(
    tx: Tx, organization_id: UUID, scanners: Collection[ClickSource]
) -> list[tuple[str, datetime]]:
    """Reclassify the clicks of scanners; return code and minute of the clicks that counted as a person's before."""
    return await tx.fetch(_RECLASSIFY, {"organization_id": organization_id, **_SOURCE_COLUMNS.of(scanners)})


_TOTAL_COLUMNS: Final = Columns(origin_kind=Labels, origin_id=Ids, step=Texts, **{"class": Labels}, clicks=Bigints)
_ADD_TOTALS: Final = _TOTAL_COLUMNS.write(
    """
    INSERT INTO click_totals (organization_id, {columns})
    SELECT %(organization_id)s, it.* FROM {rows}
    ON CONFLICT (organization_id, origin_id, step, class, origin_kind) DO UPDATE
    SET clicks = click_totals.clicks + EXCLUDED.clicks
    """
)


async def add_totals(tx: Tx, organization_id: UUID, differences: Sequence[tuple[str, UUID, str, str, int]]) -> None:
    """Add differences to the totals; each tuple has the kind, id and step of the origin, the class and the difference.
    The caller sorts them, so that two processes never deadlock."""
    await tx.execute(_ADD_TOTALS, {"organization_id": organization_id, **_TOTAL_COLUMNS.of_tuples(differences)})


async def delete_traces(tx: Tx, organization_id: UUID, *, before: datetime, limit: int) -> int:
    """Delete the exact time, IP address and user agent of clicks; code, minute and class remain."""
    return await tx.execute(
        """
        UPDATE clicks SET address = NULL, agent = NULL, traced_at = NULL
        WHERE organization_id = %(organization_id)s AND id = ANY (ARRAY(
            SELECT id FROM clicks
            WHERE organization_id = %(organization_id)s AND traced_at < %(before)s
            ORDER BY traced_at
            LIMIT %(limit)s
            FOR UPDATE SKIP LOCKED
        ))
        """,
        {"organization_id": organization_id, "before": before, "limit": limit},
    )


_DELETE_OLDEST: Final = SQL(
    """
    DELETE FROM {table}
    WHERE organization_id = %(organization_id)s AND {key} = ANY (ARRAY(
        SELECT {key} FROM {table}
        WHERE organization_id = %(organization_id)s AND {since} < %(before)s
        ORDER BY {since}
        LIMIT %(limit)s
        FOR UPDATE SKIP LOCKED
    ))
    """
)
_DELETE_CLICKS: Final = _DELETE_OLDEST.format(table=SQL("clicks"), key=SQL("id"), since=SQL("minute"))
_DELETE_LINKS: Final = _DELETE_OLDEST.format(table=SQL("links"), key=SQL("code"), since=SQL("personal_since"))


async def delete_old_clicks(tx: Tx, organization_id: UUID, *, before: datetime, limit: int) -> int:
    """Delete the oldest clicks, and return how many."""
    return await tx.execute(_DELETE_CLICKS, {"organization_id": organization_id, "before": before, "limit": limit})


async def delete_old_links(tx: Tx, organization_id: UUID, *, before: datetime, limit: int) -> int:
    """Delete personal links; a link that all recipients share remains."""
    return await tx.execute(_DELETE_LINKS, {"organization_id": organization_id, "before": before, "limit": limit})
