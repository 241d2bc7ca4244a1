"""Writes the columns of a large organization as after a build and its merges, and returns their content as arrays."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
import numpy as np

from regulars.columns import column_rows as columns
from regulars.columns.engine.customer_columns import PROFILE
from regulars.columns.engine.encoding import Dictionary, encode, encode_coded
from regulars.columns.engine.sales_encoding import encode_parts, sort_flat, with_sums_of_lines
from regulars.columns.engine.sales_runs import Dictionaries
from regulars.columns.model import BLOCK_CUSTOMERS, FORMAT, MAY_BE_TEXTED, NEVER_ASKED, WITHDRAWN, Run
from regulars.kit.db import Database, Tx
from regulars.kit.ids import new_uuid

RUN_SALES = 1_600_000
PRODUCTS = 5_000
STORES = 50
COLLECTIONS = 40
DAYS = 1_095
TIERS = ("Bronze", "Silver", "Gold", "Platinum")
LINES_OF_TICKETS = (1, 1, 1, 2, 2, 2, 2, 3, 3, 2)
# The existing customers of the organization, and others up to the number.
NUMBERS = """
INSERT INTO segment_customers (organization_id, epoch, profile_id, number)
SELECT %(organization_id)s, 1, id, row_number() OVER () - 1
FROM (
    SELECT id FROM profiles WHERE organization_id = %(organization_id)s
    UNION ALL SELECT gen_random_uuid() FROM generate_series(1, %(customers)s)
) AS customers
LIMIT %(customers)s
"""


@dataclass
class ColumnArrays:
    """The same data as arrays, to check every count."""

    organization_id: UUID
    today: date
    stores: list[UUID]
    customers: int
    tier: np.ndarray
    points: np.ndarray
    consent: np.ndarray
    customer: np.ndarray
    day: np.ndarray
    kind: np.ndarray
    amount: np.ndarray
    line_customer: np.ndarray
    line_product: np.ndarray
    line_quantity: np.ndarray


def properties_of(product: int) -> dict[str, Any]:
    return {"collection": f"C{product % COLLECTIONS}", "weight": product % 97}


def balance_of(customer: int) -> str:
    """Each customer has a different balance."""
    return f"{customer // 100}.{customer % 100:02}"


async def write_columns(database: Database, organization_id: UUID, *, customers: int, sales: int) -> ColumnArrays:
    chance = np.random.default_rng(17)
    now = datetime.now(UTC)
    today = now.date()
    async with database.transaction() as tx:
        await columns.insert_state_if_new(tx, organization_id, format_=FORMAT)
        await tx.execute(NUMBERS, {"organization_id": organization_id, "customers": customers})
        rows = await tx.fetch(
            "SELECT profile_id FROM segment_customers WHERE organization_id = %s ORDER BY number", (organization_id,)
        )
    profiles = np.frombuffer(b"".join(row[0].bytes for row in rows), ">u8").reshape(-1, 2).astype(np.uint64)
    tier = chance.integers(0, len(TIERS), customers)
    points = chance.integers(0, 10_000, customers)
    consent = chance.choice([NEVER_ASKED, MAY_BE_TEXTED, WITHDRAWN], customers, p=[0.5, 0.4, 0.1]).astype(np.uint8)
    run_id = 1
    for block in range((customers + BLOCK_CUSTOMERS - 1) // BLOCK_CUSTOMERS):
        first, last = block * BLOCK_CUSTOMERS, min((block + 1) * BLOCK_CUSTOMERS, customers)
        some = slice(first, last)
        parts = _block_parts(chance, tier[some], points[some], consent[some], first=first, now=now)
        parts |= {name: encode(profiles[some, place]) for place, name in enumerate(PROFILE)}
        async with database.transaction() as tx:
            await _write(tx, organization_id, Run(run_id, "block", 0, block, last - first, 0), parts)
        run_id += 1
    big, run_id = await _write_sales(
        database, organization_id, customers=customers, sales=sales, run_id=run_id, chance=chance, now=now
    )
    big.tier, big.points, big.consent, big.today = tier, points, consent, today
    async with database.transaction() as tx:
        await tx.execute(
            "UPDATE segment_columns SET state = 'ready', phase = 'done', build_at = NULL, next_number = %s,"
            " next_run = %s, tidy_at = NULL WHERE organization_id = %s",
            (customers, run_id, organization_id),
        )
    return big


def _block_parts(
    chance: np.random.Generator,
    tier: np.ndarray,
    points: np.ndarray,
    consent: np.ndarray,
    *,
    first: int,
    now: datetime,
) -> dict[str, bytes]:
    size = tier.size
    seconds = int(now.timestamp())
    cities = chance.integers(0, 3_000, size)
    born = [str(date(1940, 1, 1) + timedelta(days=int(day))) for day in chance.integers(0, 25_000, size)]
    # Each customer has a different moment, to the second.
    joined = [
        f"{datetime.fromtimestamp(1_500_000_000 + 97 * (first + place), UTC):%Y-%m-%dT%H:%M:%SZ}"
        for place in range(size)
    ]
    balances = [balance_of(first + place) for place in range(size)]
    ones = np.ones(size, np.uint8)
    return {
        "alive": encode(ones),
        "country": encode_coded(["FR", "BE"], (np.arange(size) % 10 == 0).astype(np.int32)),
        "created": encode(seconds - chance.integers(0, DAYS * 86_400, size)),
        "named": encode(ones),
        "own": encode(np.zeros(size, np.uint64)),
        "consent": encode(consent),
        "since": encode(seconds - chance.integers(0, DAYS * 86_400, size)),
        "a:tier": encode_coded(list(TIERS), tier),
        "a:points": _coded([str(value) for value in points.tolist()]),
        "a:city": _coded([f"City {value}" for value in cities.tolist()]),
        "a:birthday": _coded(born),
        "a:joined": _coded(joined),
        "a:balance": _coded(balances),
    }


def _coded(values: list[str]) -> bytes:
    dictionary = Dictionary()
    codes = np.array([dictionary.code(value) for value in values], np.int32)
    return encode_coded(dictionary.values, codes)


async def _write_sales(
    database: Database,
    organization_id: UUID,
    *,
    customers: int,
    sales: int,
    run_id: int,
    chance: np.random.Generator,
    now: datetime,
) -> tuple[ColumnArrays, int]:
    dictionaries = Dictionaries()
    stores = [new_uuid() for _ in range(STORES)]
    dictionaries.stores.map([store.bytes for store in stores])
    dictionaries.currencies.map(["EUR"])
    dictionaries.products.map(
        [
            msgspec.json.encode({"external_id": f"P{number}", "properties": properties_of(number)})
            for number in range(1, PRODUCTS + 1)
        ]
    )
    end = int(now.timestamp())
    sales_arrays: dict[str, list[np.ndarray]] = {name: [] for name in ("c", "d", "k", "a", "lc", "lp", "lq")}
    for first in range(0, sales, RUN_SALES):
        size = min(RUN_SALES, sales - first)
        # The second half of the customers buys ten times as often as the first; a tenth never buys.
        who = np.where(chance.random(size) < 0.1, chance.random(size) * 0.45, 0.45 + chance.random(size) * 0.45)
        customer = (who * customers).astype(np.int64)
        spread = (first + np.sort(chance.random(size)) * size) / sales
        at_s = (end - DAYS * 86_400 * (1 - spread)).astype(np.int64)
        is_return = chance.random(size) < 0.05
        lines = chance.choice(LINES_OF_TICKETS, size)
        count = int(lines.sum())
        product = np.where(chance.random(count) < 0.03, 0, chance.integers(1, PRODUCTS + 1, count))
        sign = np.where(is_return, -1, 1)
        line_sign = np.repeat(sign, lines)
        parts = {
            "customer": customer,
            "at_s": at_s,
            "store": chance.integers(0, STORES, size),
            "kind": is_return.astype(np.int64),
            "amount": sign * chance.integers(500, 25_000, size),
            "lines": lines,
        }
        parts |= {"discount": parts["amount"] // 10, "tax": parts["amount"] // 6}
        quantity = line_sign * chance.choice([1, 1, 1, 2, 3], count) * 1_000_000
        total = line_sign * chance.integers(200, 12_000, count)
        of_lines = {"product": product, "quantity": quantity, "line_units": quantity, "total": total}
        encoded = encode_parts(sort_flat(with_sums_of_lines(parts, of_lines)), dictionaries)
        run = Run(run_id, "sales", 2, run_id, size, sum(map(len, encoded.values())), int(at_s.min()), int(at_s.max()))
        async with database.transaction() as tx:
            await _write(tx, organization_id, run, encoded)
        run_id += 1
        for name, array in (
            ("c", customer.astype(np.int32)),
            ("d", (at_s // 86_400).astype(np.int32)),
            ("k", is_return),
            ("a", parts["amount"].astype(np.int32)),
            ("lc", np.repeat(customer, lines).astype(np.int32)),
            ("lp", product.astype(np.int32)),
            ("lq", quantity.astype(np.int32)),
        ):
            sales_arrays[name].append(array)
    joined = {name: np.concatenate(arrays) for name, arrays in sales_arrays.items()}
    nothing = np.zeros(0)
    big = ColumnArrays(
        organization_id, now.date(), stores, customers, nothing, nothing, nothing, joined["c"], joined["d"],
        joined["k"], joined["a"], joined["lc"], joined["lp"], joined["lq"],
    )  # fmt: skip
    return big, run_id


async def _write(tx: Tx, organization_id: UUID, run: Run, parts: dict[str, bytes]) -> None:
    await columns.insert_run(tx, organization_id, 1, run._replace(bytes=sum(map(len, parts.values()))))
    for part, content in parts.items():
        await columns.insert_blob(tx, organization_id, 1, run.id, part=part, content=content)
