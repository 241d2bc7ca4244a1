"""Members leave page by page, each of them once, or not at all."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from regulars.analysis.server import ConnectionHandler
from regulars.columns import lifecycle
from regulars.columns.client import Analysis, list_pages
from regulars.columns.protocol import CursorExpired, MemberCursor, NotReady, parse_cursor
from regulars.kit.settings import Settings

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


def test_every_member_comes_once(crowd, tmp_path):
    query = all_customers(crowd)

    async def read() -> list[int]:
        async with answering(crowd, tmp_path / "s") as analysis:
            first = await analysis.members(crowd.organization_id, query, limit=2)
            pages = [page async for page in list_pages(analysis, crowd.organization_id, query, first, limit=2)]
            assert len({member for page in pages for member in page.profile_ids}) == len(PEOPLE)
            return [len(page.profile_ids) for page in pages]

    assert crowd.runner.run(read()) == [2, 2, 1]


def test_a_process_that_is_away_for_a_moment_breaks_no_file(crowd, tmp_path):
    query = all_customers(crowd)

    async def read() -> None:
        async with answering(crowd, tmp_path / "s") as analysis:
            first = await analysis.members(crowd.organization_id, query, limit=3)
        pages = list_pages(analysis, crowd.organization_id, query, first, limit=3)
        assert await anext(pages) == first
        following = asyncio.create_task(anext(pages))
        with pytest.raises(NotReady):
            await analysis.members(crowd.organization_id, query, limit=3, deadline_s=0.1)
        async with answering(crowd, tmp_path / "s"):
            assert len((await following).profile_ids) == 2
        with pytest.raises(StopAsyncIteration):
            await anext(pages)

    crowd.runner.run(read())


def test_a_process_that_is_away_for_long_breaks_it_off(crowd, tmp_path):
    query = all_customers(crowd)

    async def read() -> None:
        async with answering(crowd, tmp_path / "s") as analysis:
            first = await analysis.members(crowd.organization_id, query, limit=3)
        pages = list_pages(analysis, crowd.organization_id, query, first, limit=3, deadline_s=0.1, retries_s=0)
        await anext(pages)
        with pytest.raises(NotReady):
            await anext(pages)

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
