"""Members leave page by page, each of them once, or not at all."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from pathlib import Path

import pytest

from regulars.analysis.server import ConnectionHandler
from regulars.columns import lifecycle
from regulars.columns.client import Analysis
from regulars.columns.protocol import CursorExpired, MemberCursor, NotReady, parse_cursor
from regulars.columns.ranked_source import PAGE_RETRIES_S, ByRank
from regulars.kit.settings import Settings
from regulars.lists.sources import read_all_rows

PEOPLE = [f"c{number}" for number in range(5)]


@pytest.fixture
def crowd(shop):
    for name in PEOPLE:
        shop.customer(name)
    shop.begin_and_build()
    return shop


@asynccontextmanager
async def answering(shop, path: Path) -> AsyncIterator[Analysis]:
    """As the analysis process does, in this one."""
    async with await asyncio.start_unix_server(ConnectionHandler(shop.engine).serve, path=path):
        yield Analysis(Settings(), path=path)


def all_customers(shop):
    return shop.query({"type": "all", "of": []})


def source_of(shop, query, analysis: Analysis, *, retries_s: float = PAGE_RETRIES_S, **options) -> ByRank:
    """The customers of a query, each as its id."""
    request = partial(analysis.members, shop.organization_id, query, **options)

    async def load(_tx, ids):
        return list(ids)

    return ByRank(request=request, load=load, retries_s=retries_s, is_sorted="order" in options)


def test_every_member_comes_once(crowd, tmp_path):
    query = all_customers(crowd)

    async def read() -> None:
        async with answering(crowd, tmp_path / "s") as analysis:
            source = source_of(crowd, query, analysis)
            rows = [row async for row in read_all_rows(source, nullcontext, limit=2)]
            assert len(set(rows)) == len(rows) == len(PEOPLE)

    crowd.runner.run(read())


def test_pages_lead_forth_and_back_in_a_sorted_list_only(crowd, tmp_path):
    query = all_customers(crowd)

    async def read() -> None:
        async with answering(crowd, tmp_path / "s") as analysis:
            source = source_of(crowd, query, analysis, order="created")
            first = await source.page(nullcontext, limit=2)
            second = await source.page(nullcontext, after=first.next, limit=2)
            last = await source.page(nullcontext, after=second.next, limit=2)
            assert [len(page.rows) for page in (first, second, last)] == [2, 2, 1]
            assert (first.previous, last.next, last.scanned) == (None, None, None)
            assert (await source.page(nullcontext, before=last.previous, limit=2)).rows == second.rows
            assert (await source.page(nullcontext, before=second.previous, limit=2)).rows == first.rows
            # A cursor of an earlier release: the epoch, and the number of customers before the page.
            epoch = parse_cursor(first.next).epoch
            assert (await source.page(nullcontext, after=f"{epoch}-2", limit=2)).rows == second.rows
            unsorted = source_of(crowd, query, analysis)
            following = (await unsorted.page(nullcontext, limit=2)).next
            assert (await unsorted.page(nullcontext, after=following, limit=2)).previous is None

    crowd.runner.run(read())


def test_a_process_that_is_away_for_a_moment_breaks_no_file(crowd, tmp_path):
    query = all_customers(crowd)

    async def read() -> None:
        async with answering(crowd, tmp_path / "s") as analysis:
            source = source_of(crowd, query, analysis)
            first = await source.page(nullcontext, limit=3)
        with pytest.raises(NotReady):
            await source_of(crowd, query, analysis, deadline_s=0.1).page(nullcontext, limit=3)
        following = asyncio.create_task(source.page(nullcontext, after=first.next, limit=3))
        async with answering(crowd, tmp_path / "s"):
            assert len((await following).rows) == 2

    crowd.runner.run(read())


def test_a_process_that_is_away_for_long_breaks_it_off(crowd, tmp_path):
    query = all_customers(crowd)

    async def read() -> None:
        async with answering(crowd, tmp_path / "s") as analysis:
            first = await source_of(crowd, query, analysis).page(nullcontext, limit=3)
        source = source_of(crowd, query, analysis, retries_s=0, deadline_s=0.1)
        with pytest.raises(NotReady):
            await source.page(nullcontext, after=first.next, limit=3)

    crowd.runner.run(read())


def test_the_next_page_of_columns_that_were_built_anew_is_refused(crowd, tmp_path):
    """Their numbers are others: the page would repeat some people and leave out others."""
    query = all_customers(crowd)
    before = crowd.ask(query, want="members", limit=2).members
    crowd.do(lambda tx: lifecycle.rebuild(tx, crowd.organization_id))

    async def ask(after: MemberCursor | None) -> int:
        async with answering(crowd, tmp_path / "s") as analysis:
            return len((await analysis.members(crowd.organization_id, query, after=after)).profile_ids)

    with pytest.raises(NotReady):
        crowd.runner.run(ask(before.next))
    crowd.build()
    with pytest.raises(CursorExpired, match="start from the first page"):
        crowd.runner.run(ask(before.next))
    assert crowd.runner.run(ask(None)) == len(PEOPLE)


@pytest.mark.parametrize("text", ["", "12", "1-", "-1", "1-2-3", "a-b", "1-" + 10 * "9", "١-٢", "1-2\n"])
def test_what_is_no_place_is_the_first_page(text):
    assert parse_cursor(text) is None


def test_a_place_is_read_as_it_is_written():
    assert parse_cursor(str(MemberCursor(3, 120))) == MemberCursor(3, 120)
