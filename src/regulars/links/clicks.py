"""Collect clicks on short links in memory and write them every half second, so that a redirect waits for no write.

A process that is killed loses the clicks of its last half second; a process that stops writes them first. While the
database is unavailable, clicks wait in memory, and clicks beyond `WAITING_CLICKS_MAX` are lost.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from regulars.kit import log
from regulars.kit.db import CONNECTION_ERRORS, Database, Tx
from regulars.links import link_rows as queries
from regulars.links.facts import LinkClicked
from regulars.links.marks import OPT_OUT
from regulars.links.model import (
    ADDRESS_WINDOW,
    Click,
    ClickClass,
    ClickSource,
    LinkOrigin,
    LinkRow,
    is_too_soon_for_person,
)
from regulars.work import outbox

WRITE_EVERY_S: Final = 0.5
# The most clicks in one transaction: few, because redirects wait while this process prepares the rows.
CLICKS_PER_WRITE_MAX: Final = 250
WAITING_CLICKS_MAX: Final = 50_000
# How many clicks of one IP address are read to count their distinct codes.
CLICKS_READ_MAX: Final = 200

_log = log.get(__name__)


class ClickLog:
    """The clicks that wait to be written; one object per process."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: dict[UUID, list[Click]] = defaultdict(list)
        self._count = 0

    def record(self, organization_id: UUID, click: Click) -> None:
        if self._count >= WAITING_CLICKS_MAX:
            _log.warning("clicks.lost", organization_id=str(organization_id), clicks=1)
            return
        self._count += 1
        self._waiting[organization_id].append(click)

    async def write_forever(self) -> None:
        while True:
            await asyncio.sleep(WRITE_EVERY_S)
            await self.write()

    async def write(self) -> None:
        """Write the waiting clicks; after a lost connection or a cancellation, unwritten clicks wait again."""
        for organization_id in sorted(self._waiting):
            clicks = self._waiting.pop(organization_id)
            try:
                await self._write_all(organization_id, clicks)
            except CONNECTION_ERRORS as error:
                _log.warning("clicks.postponed", organization_id=str(organization_id), error=type(error).__name__)
            finally:
                if clicks:
                    self._waiting[organization_id][:0] = clicks

    async def _write_all(self, organization_id: UUID, clicks: list[Click]) -> None:
        """Write clicks in batches, and remove each batch from the list when it is written."""
        while batch := clicks[:CLICKS_PER_WRITE_MAX]:
            try:
                async with self._database.transaction() as tx:
                    await store_clicks(tx, organization_id, batch)
            except CONNECTION_ERRORS:
                raise
            except Exception:  # noqa: BLE001  # the clicks of other organizations must still be written
                _log.exception("clicks.lost", organization_id=str(organization_id), clicks=len(batch))
            del clicks[: len(batch)]
            self._count -= len(batch)


async def store_clicks(tx: Tx, organization_id: UUID, clicks: Sequence[Click]) -> None:
    """Classify, insert and count clicks, and publish the clicks of people on their personal links. A click counts as a
    machine's if it came too soon after its text was sent, or from a link scanner."""
    links = await queries.find_links(tx, organization_id, {click.code for click in clicks})
    text_ids = {link.text_id for link in links.values() if link.text_id is not None}
    sent_at = await queries.find_claim_times(tx, organization_id, text_ids) if text_ids else {}
    valid = [_classify(click, links[click.code], sent_at) for click in clicks if click.code in links]
    inserted = await queries.insert_clicks_if_new(tx, organization_id, valid)
    stored = [click for click in valid if click.id in inserted]
    reclassified = await _reclassify_scanners(tx, organization_id, stored)
    links |= await queries.find_links(tx, organization_id, {code for code, _ in reclassified} - links.keys())
    # What to add to the stored totals of clicks.
    differences: Counter[tuple[LinkOrigin, ClickClass]] = Counter()
    for click in stored:
        differences[links[click.code].origin, click.class_] += 1
    for code, _ in reclassified:
        if code in links:
            differences[links[code].origin, ClickClass.PERSON] -= 1
            differences[links[code].origin, ClickClass.MACHINE] += 1
    # Sorted by the primary key of the totals, so that two processes never deadlock.
    rows = [(*origin, class_.value, difference) for (origin, class_), difference in differences.items() if difference]
    await queries.add_totals(tx, organization_id, sorted(rows, key=lambda row: (row[1], row[2], row[3], row[0])))
    by_people = [(click.code, click.minute) for click in stored if click.class_ is ClickClass.PERSON]
    await outbox.record(tx, organization_id, [*_click_facts(links, [*by_people, *reclassified])])


def _classify(click: Click, link: LinkRow, sent_at: Mapping[UUID, datetime]) -> Click:
    text_sent_at = None if link.text_id is None else sent_at.get(link.text_id)
    return click._replace(class_=ClickClass.MACHINE) if is_too_soon_for_person(click.at, text_sent_at) else click


async def _reclassify_scanners(tx: Tx, organization_id: UUID, clicks: Sequence[Click]) -> list[tuple[str, datetime]]:
    """Reclassify the clicks of link scanners, which requested too many codes within a minute, as made by a machine.
    Returns code and minute of the clicks that counted as a person's before."""
    scanners = await queries.find_scanners(tx, organization_id, _list_sources(clicks), limit=CLICKS_READ_MAX)
    return await queries.mark_as_machines(tx, organization_id, scanners) if scanners else []


def _list_sources(clicks: Sequence[Click]) -> set[ClickSource]:
    """The IP addresses and user agents of clicks, each with the minute before the last click of the address. Clicks
    that waited for the database may be of many minutes, so each calendar minute has sources of its own."""
    last: dict[tuple[str, datetime], datetime] = {}
    for click in clicks:
        last[click.address, click.minute] = max(click.at, last.get((click.address, click.minute), click.at))
    times = [(click, last[click.address, click.minute]) for click in clicks]
    return {ClickSource(click.address, click.agent, until - ADDRESS_WINDOW, until) for click, until in times}


def _click_facts(links: Mapping[str, LinkRow], clicks: Iterable[tuple[str, datetime]]) -> Iterable[LinkClicked]:
    for code, minute in dict.fromkeys(clicks):
        link = links.get(code)
        if link is not None and link.profile_id is not None and link.text_id is not None and link.url != OPT_OUT:
            yield LinkClicked(link.profile_id, link.text_id, minute)
