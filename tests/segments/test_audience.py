"""The audience of a campaign: everyone at one moment, each once, with whether they may be texted."""

import asyncio
import statistics
from datetime import timedelta
from struct import iter_unpack
from uuid import UUID, uuid4

import msgspec
import pytest
from tests.segments.desk import definition
from tests.segments.test_members import answering

from regulars.catalog.entries import retype
from regulars.catalog.model import AttributeType, Catalog
from regulars.columns.client import Analysis
from regulars.columns.engine import audience as frozen
from regulars.columns.protocol import (
    AnalysisResponse,
    AnalysisUnavailable,
    AudienceCounts,
    AudiencePiece,
    ConsentSplit,
    read_message,
    write_message,
)
from regulars.kit.settings import Settings
from regulars.segments.audience import AudienceRefused, resolve_audience
from regulars.segments.saved import manage

TIERED = {"type": "attribute", "key": "tier", "comparison": "is_set"}
GOLD = {"type": "attribute", "key": "tier", "comparison": "is", "value": "Gold"}
BOUGHT = {"type": "bought"}
POUNDS = {"type": "spend", "currency": "GBP", "at_least_cents": 1}
ID_BYTES = 16


class Crowd:
    """Customers a to f; a and b may be texted, c withdrew, d has a do-not-contact number, e and f were never asked."""

    def __init__(self, shop) -> None:
        self.shop = shop
        numbers = {"a": "+33612345001", "b": "+447400123456", "c": "+33612345003", "d": "+33612345004"}
        self.ids = {
            name: shop.customer(name, phone=numbers.get(name), tier="Gold" if name in "abc" else "Silver")
            for name in "abcdef"
        }
        for name in "abc":
            shop.opt_in(name, numbers[name])
        shop.opt_out(numbers["c"])
        shop.opt_out(numbers["d"])
        shop.drain()
        self.gold, self.tiered, self.buyers = (
            self.segment(condition, name)
            for condition, name in ((GOLD, "Gold"), (TIERED, "Tiered"), (BOUGHT, "Buyers"))
        )
        shop.build()

    def segment(self, condition, name: str) -> UUID:
        shop = self.shop
        return shop.do(
            lambda tx: manage.create_segment(tx, shop.organization_id, definition(condition, name=name))
        ).row.id

    def query(self, include, exclude=(), **given):
        shop = self.shop
        return shop.do(lambda tx: resolve_audience(tx, shop.organization_id, include=include, exclude=exclude, **given))

    def read_audience(self, query, tmp_path) -> list[AudiencePiece]:
        async def read() -> list[AudiencePiece]:
            async with answering(self.shop, tmp_path / "s") as analysis:
                return [piece async for piece in analysis.stream_audience(self.shop.organization_id, query)]

        return self.shop.runner.run(read())

    def count(self, query, tmp_path, **given) -> AudienceCounts:
        async def read() -> AudienceCounts:
            async with answering(self.shop, tmp_path / "s") as analysis:
                return await analysis.count_audience(self.shop.organization_id, query, **given)

        return self.shop.runner.run(read())

    def by_state(self, pieces: list[AudiencePiece]) -> dict[str, set[str]]:
        names = {profile_id.bytes: name for name, profile_id in self.ids.items()}
        found: dict[str, set[str]] = {}
        for piece in pieces:
            for (profile_id,) in iter_unpack(f"{ID_BYTES}s", piece.profile_ids):
                found.setdefault(piece.state, set()).add(names[profile_id])
        return found


@pytest.fixture
def crowd(shop) -> Crowd:
    return Crowd(shop)


def test_an_audience_has_everyone_once_with_their_consent_state(crowd, tmp_path, monkeypatch):
    monkeypatch.setattr(frozen, "PIECE_PROFILES", 1)
    pieces = crowd.read_audience(crowd.query([crowd.gold, crowd.tiered]), tmp_path)
    assert crowd.by_state(pieces) == {
        "may_be_texted": {"a", "b"},
        "withdrawn": {"c"},
        "never_asked": {"e", "f"},
        "do_not_contact": {"d"},
    }
    assert sum(len(piece.profile_ids) for piece in pieces) == 6 * ID_BYTES
    assert [piece.is_last for piece in pieces] == [False] * 5 + [True]
    assert [piece.state for piece in pieces[:2]] == ["may_be_texted"] * 2
    first, *others = pieces
    assert all(piece.counts is None for piece in others)
    assert first.counts is not None
    assert (first.counts.total, first.counts.split) == (6, ConsentSplit(2, 1, 2, 1))
    assert first.counts.countries == (("FR", 1), ("GB", 1))
    counted = crowd.count(crowd.query([crowd.tiered]), tmp_path, sample=9)
    assert (counted.split, set(counted.sample)) == (first.counts.split, {crowd.ids["a"], crowd.ids["b"]})
    assert len(crowd.count(crowd.query([crowd.tiered]), tmp_path, sample=1).sample) == 1


def test_an_audience_without_a_customer_says_so(crowd, tmp_path):
    pieces = crowd.read_audience(crowd.query([crowd.gold], [crowd.tiered]), tmp_path)
    assert crowd.by_state(pieces) == {}
    assert pieces[0].counts is not None
    assert (pieces[0].counts.total, pieces[-1].is_last) == (0, True)


def test_a_segment_with_a_fault_is_refused_with_its_name(crowd):
    shop = crowd.shop
    shop.do(lambda tx: retype(tx, shop.organization_id, Catalog.ATTRIBUTES, "tier", declared=AttributeType.NUMBER))
    for include, exclude in (([crowd.gold], []), ([crowd.buyers], [crowd.gold])):
        with pytest.raises(AudienceRefused, match="The segment Gold has a fault: 'Gold' cannot be read as"):
            crowd.query(include, exclude)


def test_a_segment_that_is_gone_and_an_empty_choice_are_refused(crowd):
    with pytest.raises(AudienceRefused, match="There is no segment"):
        crowd.query([crowd.gold, uuid4()])
    with pytest.raises(AudienceRefused, match="Choose at least one segment"):
        crowd.query([], [crowd.gold])


def test_an_audience_that_breaks_off_is_an_error(crowd, tmp_path):
    """A process that dies between two pieces: what was read is no audience."""
    query = crowd.query([crowd.gold])
    piece = AnalysisResponse(piece=AudiencePiece(state="may_be_texted", profile_ids=bytes(16), is_last=False))

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_message(reader)
        await write_message(writer, msgspec.msgpack.encode(piece))
        writer.close()

    async def read() -> None:
        async with await asyncio.start_unix_server(serve, path=tmp_path / "s"):
            analysis = Analysis(Settings(), path=tmp_path / "s")
            pieces = analysis.stream_audience(crowd.shop.organization_id, query)
            assert len((await anext(pieces)).profile_ids) == ID_BYTES
            with pytest.raises(AnalysisUnavailable):
                await anext(pieces)

    crowd.shop.runner.run(read())


def test_a_process_that_sends_no_piece_is_not_waited_for_longer_than_the_deadline(crowd, tmp_path):
    query, is_over = crowd.query([crowd.gold]), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await is_over.wait()
        writer.close()

    async def read() -> None:
        async with await asyncio.start_unix_server(serve, path=tmp_path / "s"):
            analysis = Analysis(Settings(), path=tmp_path / "s")
            with pytest.raises(AnalysisUnavailable, match="did not answer in time"):
                await anext(analysis.stream_audience(crowd.shop.organization_id, query, deadline_s=-0.9))
            is_over.set()

    crowd.shop.runner.run(read())


def test_spend_per_head_is_that_of_weeks_of_those_who_may_be_texted(crowd, tmp_path):
    shop = crowd.shop
    # Days ago and cents; a return is negative. Today, and more than 52 weeks ago, do not count.
    sales = {
        "a": [(3, 1000), (4, 500), (11, 700), (12, -200), (361, 900), (0, 5000), (370, 5000)],
        "b": [(3, 300)],
        "c": [(3, 9999)],
    }
    for name, tickets in sales.items():
        for days, cents in tickets:
            kind = "PURCHASE" if cents > 0 else "RETURN"
            shop.sale(name, kind=kind, amount=abs(cents), ago=timedelta(days=days))
    shop.sale("b", amount=4000, currency="GBP", ago=timedelta(days=50))
    shop.drain()
    weeks = {(name, week): 0 for name in "ab" for week in range(52)}
    for name in "ab":
        for days, cents in sales[name]:
            if 1 <= days <= 364:
                weeks[name, (days - 1) // 7] += cents
    counts = crowd.count(crowd.query([crowd.gold]), tmp_path, with_spend=True)
    euro, pound = counts.spend
    assert crowd.count(crowd.query([crowd.gold]), tmp_path, with_spend=True).spend == counts.spend
    # The spend of other customers is not taken for theirs.
    assert crowd.count(
        crowd.query([crowd.gold], [crowd.segment(POUNDS, "Pounds")]), tmp_path, with_spend=True
    ).spend != (counts.spend)
    assert (euro.currency, euro.buyers, pound.currency, pound.buyers) == ("EUR", 2, "GBP", 1)
    # a bought in three weeks, and b in one.
    assert (euro.buyers_per_week, pound.buyers_per_week) == (4 / 52, 1 / 52)
    assert euro.mean_cents == pytest.approx(statistics.mean(weeks.values()))
    assert euro.variance_cents == pytest.approx(statistics.pvariance(weeks.values()))
    assert pound.mean_cents == pytest.approx(4000 / 104)
    assert crowd.count(crowd.query([crowd.gold]), tmp_path).spend == ()
    assert crowd.count(crowd.query([crowd.gold], [crowd.gold]), tmp_path, with_spend=True).spend == ()
