"""Random shops and random segments: what the columns say is what explain finds in the rows, whatever happens meanwhile."""

import asyncio
import contextlib
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from datetime import timedelta
from pathlib import Path as FilePath
from typing import Any

import pytest
from tests.columns.fed_shop import OUR_LISTENERS, FedShop
from tests.columns.stored_sales import check_all_sales
from tests.columns.trees import DAYS, ENUMS, LARGE, VALUES, Trees
from tests.support.waiting import wait_until

from regulars.catalog.entries import find_types, retype
from regulars.catalog.model import AttributeType, Catalog
from regulars.columns import lifecycle
from regulars.columns.column_rows import find_state, list_runs
from regulars.columns.engine import compaction
from regulars.columns.engine.compaction import compact
from regulars.columns.feed import runs as feeding
from regulars.columns.feed.build import run_batch
from regulars.columns.model import Run
from regulars.conditions.customers import ConditionExplanation, ObservedValue
from regulars.conditions.documents import DefinitionRefused
from regulars.conditions.tree import OfAttribute, Path, walk
from regulars.kit.db import Tx
from regulars.kit.ids import CAMPAIGN, JOURNEY, SEGMENT, new_uuid
from regulars.segments.definition import Definition
from regulars.segments.explain import evaluate_customers, load_members
from regulars.segments.saved.manage import create_segment
from regulars.segments.saved.resolve import query_of, resolve
from regulars.work.outbox import OutboxQueue

ROOT = FilePath(__file__).resolve().parent.parent.parent
PEOPLE = [f"p{number}" for number in range(14)]
NUMBERS = [f"+3361234560{number}" for number in range(8)] + ["+14155552671"]
# More of them are worth an hour now and then.
SEEDS = int(os.environ.get("REGULARS_TEST_SEEDS", "2"))


class Story:
    """What may happen, by chance."""

    def __init__(self, shop: FedShop, seed: int) -> None:
        self.shop = shop
        self.chance = random.Random(seed)
        self.journeys = [new_uuid(), new_uuid()]
        self.amounts: list[int] = []

    def step(self, monkeypatch: pytest.MonkeyPatch) -> None:
        acts = [
            (5, self.sell), (4, self.change), (2, self.consent), (1, self.erase), (1, self.retype), (2, self.shop.drain),
            (1, lambda: self.dies(monkeypatch)), (1, self.compact), (1, self.forget), (1, self.purge), (0.3, self.rebuild),
            (2, self.text),
        ]  # fmt: skip
        [(_, act)] = self.chance.choices(acts, [weight for weight, _ in acts])
        act()

    def sell(self) -> None:
        pick = self.chance.choice
        kind = pick(["PURCHASE", "PURCHASE", "PURCHASE", "RETURN"])
        sign = pick([1, 1, -1]) if kind == "RETURN" else 1
        lines = [
            {
                "quantity": pick([1, 2, 0.5, 0.1234565]) * pick([1, sign]),
                "unit": pick([None, None, "kg"]),
                "total_price_cents": sign * pick([500, 1000, 12_345, *self.amounts]),
                "product": pick(
                    [
                        None,
                        {"external_id": pick(["A", "B"]), "properties": {"size": pick([38, 40.0, "XL", True, "x"])}},
                        {"external_id": pick(["A", "C"]), "properties": {"size": pick(["38", 40.5]), "fair": True}},
                        {"name": "unnamed"},
                    ]
                ),
            }
            for _ in range(pick([0, 1, 2, 3]))
        ]
        self.shop.sale(
            pick([*PEOPLE, None]),
            kind=kind,
            amount=pick([0, 500, 1000, 2500, 12_345, *self.amounts]),
            ago=timedelta(days=pick(DAYS), hours=pick([0, 1, 23])),
            store=pick(["LYO", "PAR"]),
            currency=pick(["EUR", "EUR", "CHF"]),
            discount=pick([0, 0, 150]),
            tax=pick([None, 0, 200]),
            lines=lines,
        )

    def change(self) -> None:
        pick = self.chance.choice
        attributes = {key: pick([*values, None]) for key, values in VALUES.items() if self.chance.random() < 0.6}
        self.shop.customer(
            pick(PEOPLE),
            phone=pick([None, None, *NUMBERS, "not a number"]),
            first_name=pick([None, "Zoé", "  "]),
            **attributes,
        )

    def consent(self) -> None:
        pick = self.chance.choice
        if self.chance.random() < 0.65:
            name = pick([*PEOPLE, None])
            if name is not None:
                self.shop.customer(name)
            self.shop.opt_in(name, pick(NUMBERS), source=pick(["OTHER", "WEBSITE"]), store=pick([None, "PAR"]))
        else:
            self.shop.opt_out(pick(NUMBERS))

    def text(self) -> None:
        pick = self.chance.choice
        name = pick(PEOPLE)
        self.shop.customer(name)
        self.shop.text(
            name, ago=timedelta(days=pick(DAYS)), journey=pick([None, *self.journeys]), state=pick(["sent", "failed"])
        )

    def erase(self) -> None:
        self.shop.erase(self.chance.choice(PEOPLE))

    def retype(self) -> None:
        key, declared = self.chance.choice([*VALUES]), self.chance.choice([*AttributeType])
        allowed = ENUMS if declared is AttributeType.ENUM else {"size": [], "others": []}

        async def act(tx: Tx) -> None:
            organization_id = self.shop.organization_id
            await retype(
                tx, organization_id, Catalog.ATTRIBUTES, key, declared=declared, allowed_values=allowed["others"]
            )
            await retype(
                tx, organization_id, Catalog.PRODUCTS, "size", declared=declared, allowed_values=allowed["size"]
            )

        self.shop.do(act)

    def dies(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """In the middle of a drain, after the numbers are given: nothing of it has happened."""
        self.sell()

        def die(*_: Any) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(feeding, "pack_sales", die)
            with contextlib.suppress(KeyboardInterrupt):
                self.shop.drain()

    def is_killed(self, url: str) -> None:
        """Another worker's feeder ends in the middle of a drain, as a process does that runs out of memory."""
        self.sell()
        command = [sys.executable, "-m", "tests.columns.killed_feeder", url, str(self.shop.organization_id)]
        ended = subprocess.run(command, cwd=ROOT, check=False, timeout=120)
        assert ended.returncode == -signal.SIGKILL
        # PostgreSQL notices in a moment; until then the facts are the killed one's, and a drain passes them over.
        every = "SELECT id FROM outbox WHERE organization_id = %s"
        wait_until(lambda: len(self.shop.sql(every + " FOR UPDATE SKIP LOCKED")) == len(self.shop.sql(every)))

    def forget(self) -> None:
        """The analysis process was killed, and another reads everything anew."""
        self.shop.engine.cache.forget(self.shop.organization_id)

    def compact(self) -> None:
        self.shop.drain()
        self.shop.compact()
        assert not compaction.choose_runs(self.runs()), "Runs that could be merged were left as they are."

    def purge(self) -> None:
        name = self.chance.choice(PEOPLE)
        self.shop.customer(name)
        self.shop.drain()
        self.shop.erase(name)
        self.shop.drain()
        assert self.shop.compact(purge_after=timedelta(0))

    def runs(self) -> list[Run]:
        async def find(tx: Tx) -> list[Run]:
            state = await find_state(tx, self.shop.organization_id)
            assert state is not None
            return await list_runs(tx, self.shop.organization_id, state.epoch)

        return self.shop.do(find)

    def rebuild(self) -> None:
        self.shop.do(lambda tx: lifecycle.rebuild(tx, self.shop.organization_id))
        self.sell()
        self.shop.build()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_columns_and_rows_agree(shop, seed, columns_database_url, monkeypatch):
    # Few are enough to be merged, so that most of what is counted was.
    monkeypatch.setattr(compaction, "MERGE_RUNS", 3)
    story = Story(shop, seed)
    for _ in range(15):
        story.sell()
        story.change()
    shop.begin()
    story.sell()
    shop.build()
    trees = Trees(seed, journeys=[JOURNEY.encode(journey) for journey in story.journeys])
    trees.types = types_of(shop)
    trees.segments = [save(shop, trees.group()), save(shop, trees.group(1))]
    for number in range(6):
        for _ in range(10):
            story.step(monkeypatch)
        if number == 2:
            story.is_killed(columns_database_url)
            # From now on there are amounts whose sums are too large for the quick way.
            story.amounts = [LARGE]
        shop.drain()
        check_all_sales(shop)
        trees.types = types_of(shop)
        with monkeypatch.context() as patched:
            if number % 2:
                hurry(patched)
            for _ in range(8):
                compare(shop, trees.group(), seed)


def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """However few they are, values, days, sums and lines take the way that is made for many."""
    for name, value in {
        "coded_values.VECTORIZED_VALUES_MIN": 1,
        "numbers.SUM_MAX": -1,
        "calendar._LOOKED_UP_DAYS_MAX": 0,
        "sales_runs.SLICES_MAX": 0,
    }.items():
        monkeypatch.setattr(f"regulars.columns.engine.{name}", value)


def types_of(shop: FedShop) -> dict[str, AttributeType]:
    async def act(tx: Tx) -> dict[str, AttributeType]:
        attributes = await find_types(tx, shop.organization_id, Catalog.ATTRIBUTES, [*VALUES])
        properties = await find_types(tx, shop.organization_id, Catalog.PRODUCTS, ["size"])
        return {key: declared for key, (declared, _) in (attributes | properties).items()}

    return shop.do(act)


def save(shop: FedShop, match: dict[str, Any]) -> str:
    """A segment that others may ask for; where the types refuse it, a plain one."""
    definition = Definition(name="Other", match=shop.match(match))
    try:
        return SEGMENT.encode(shop.do(lambda tx: create_segment(tx, shop.organization_id, definition)).row.id)
    except DefinitionRefused:
        return save(shop, {"type": "any", "of": [{"type": "bought"}, {"type": "named"}]})


class Crowd:
    """Writers, drains, a build and a compaction process side by side."""

    def __init__(self, shop: FedShop, seed: int) -> None:
        self.shop = shop
        self.chance = random.Random(seed)
        self.is_writing = True

    async def act(self) -> None:
        await asyncio.gather(self.write(), self.drain(), self.drain(), self.build(), self.clean())

    async def write(self) -> None:
        for number in range(60):
            name = f"p{self.chance.randrange(12)}"
            if number % 3:
                await self.shop.sale_now(name if number % 5 else None, amount=100)
            else:
                await self.shop.customer_now(
                    name, {"tier": self.chance.choice(["Gold", "Silver"]), "points": str(number)}
                )
        self.is_writing = False

    async def drain(self) -> None:
        queue = OutboxQueue(OUR_LISTENERS)
        while await queue.run_pass(self.shop.database, self.shop.organization_id) or self.is_writing:
            pass

    async def build(self) -> None:
        while await run_batch(self.shop.database, self.shop.organization_id) or await self.shop.is_building():
            pass

    async def clean(self) -> None:
        while self.is_writing:
            await compact(self.shop.database, self.shop.organization_id)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_they_agree_after_everything_happened_at_once(shop, seed):
    """Order does not matter, and nothing counts twice."""
    for number in range(30):
        shop.sale(f"p{number % 9}", amount=100)
    shop.drain()
    shop.begin()
    shop.runner.run(Crowd(shop, seed).act())
    shop.drain()
    assert shop.sql("SELECT count(*) FROM sales_events WHERE organization_id = %s") == [(70,)]
    check_all_sales(shop)
    trees = Trees(seed)
    for bound in range(0, 1500, 100):
        compare(shop, {"type": "all", "of": [{"type": "spend", "currency": "EUR", "at_least_cents": bound}]}, seed)
    for _ in range(5):
        compare(shop, trees.group(), seed)


def compare(shop: FedShop, match: dict[str, Any], seed: int) -> None:
    async def by_rows(tx: Tx) -> tuple[Any, set[Any], Counter[Path], Counter[Path], Any]:
        resolved = await resolve(tx, shop.organization_id, shop.match(match))
        ids = [
            row[0]
            for row in await tx.fetch("SELECT id FROM profiles WHERE organization_id = %s", (shop.organization_id,))
        ]
        customers = await load_members(tx, shop.organization_id, resolved, ids, with_consent=True)
        counts: Counter[Path] = Counter()
        unreadable: Counter[Path] = Counter()
        members = set()
        for customer, tree in evaluate_customers(resolved, customers.values()):
            note(tree, counts, unreadable)
            if tree.holds is True and not resolved.faults:
                members.add(customer.id)
        split = Counter(customers[identifier].consent.state for identifier in members)
        return resolved, members, counts, unreadable, split

    resolved, members, counts, unreadable, split = shop.do(by_rows)
    conditions = dict(walk(resolved.match))
    query = query_of(resolved)
    figures = shop.figures(query)
    answer = shop.ask(query, want="members", limit=1000)
    where = f"seed {seed}: {match} (types {dict(query.attributes)} {dict(query.properties)})"
    assert answer.members is not None
    assert set(answer.members.profile_ids) == members, where
    assert figures.total == len(members), where
    for one in figures.conditions:
        assert one.count == counts[one.path], f"{one.path} of {where}"
        if isinstance(conditions[one.path], OfAttribute):
            assert one.unreadable == unreadable[one.path], f"unreadable at {one.path} of {where}"
    counted = {
        state: getattr(figures.split, state)
        for state in ("may_be_texted", "withdrawn", "never_asked", "do_not_contact")
    }
    assert counted == {state: split[state] for state in counted}, where


def note(explained: ConditionExplanation, counts: Counter[Path], unreadable: Counter[Path]) -> None:
    counts[explained.path] += explained.holds is True
    unreadable[explained.path] += (
        isinstance(explained.observation, ObservedValue) and not explained.observation.is_parsable
    )
    for inner in explained.inner:
        note(inner, counts, unreadable)


def test_they_agree_about_texts_and_other_segments(shop):
    for name in ("p0", "p1", "p2"):
        shop.customer(name, tier="Gold" if name == "p0" else "Silver")
    shop.sale("p1", amount=700)
    shop.begin_and_build()
    journey, other = new_uuid(), new_uuid()
    shop.text("p0", ago=timedelta(days=3), journey=journey)
    shop.text("p0", ago=timedelta(days=9))
    shop.text("p1", ago=timedelta(days=9), journey=other)
    shop.text("p2", ago=timedelta(days=1), state="failed")
    campaign = new_uuid()
    shop.text("p0", ago=timedelta(days=2), campaign=campaign, state="delivered")
    shop.text("p1", ago=timedelta(days=2), campaign=campaign, state="unknown")
    shop.text("p2", ago=timedelta(days=2), campaign=campaign, state="skipped")
    shop.drain()
    for days in (1, 3, 4, 10, 30):
        for got in (True, False):
            for of in ({}, {"journey": JOURNEY.encode(journey)}, {"journey": JOURNEY.encode(other)}):
                compare(shop, {"type": "all", "of": [{"type": "texts", "days": days, "got": got, **of}]}, days)
    received = {"type": "received_campaign", "id": CAMPAIGN.encode(campaign)}
    assert shop.members(received) == {"p0", "p1"}
    for it in (received, {**received, "is": False}, {**received, "id": CAMPAIGN.encode(new_uuid())}):
        compare(shop, {"type": "all", "of": [it]}, 0)
    gold = {"type": "attribute", "key": "tier", "comparison": "is", "value": "gold"}
    definition = Definition(name="Gold", match=shop.match({"type": "all", "of": [gold]}))
    saved = shop.do(lambda tx: create_segment(tx, shop.organization_id, definition))
    inside = {"type": "segment", "id": SEGMENT.encode(saved.row.id)}
    for kind in ("all", "any", "none"):
        compare(shop, {"type": kind, "of": [inside, {"type": "bought"}]}, 0)
    # The other one now compares as its type no longer does: it matches no customer, nor do those that use it.
    shop.do(lambda tx: retype(tx, shop.organization_id, Catalog.ATTRIBUTES, "tier", declared=AttributeType.NUMBER))
    compare(shop, {"type": "none", "of": [inside]}, 0)
    assert shop.figures(shop.resolved({"type": "none", "of": [inside]})).total == 0
