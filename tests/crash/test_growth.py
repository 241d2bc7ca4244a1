"""Tests that a soak reports metrics that grow, and no others."""

import json
from dataclasses import replace

import pytest
from tests.crash import growth
from tests.crash.growth import Sample
from tests.crash.load import Order, request_maker

CALM = Sample(
    at_s=0.0,
    memory_mib={"server-0": 100.0, "worker": 110.0},
    handles={"server-0": 60, "worker": 50},
    connections=20,
    waiting=40,
    dead={"outbox": (3_000, 40), "texts": (9_000, 100_000)},
    table_bytes={"outbox": 4 << 20, "outbox_retries": 8192},
    others_share=0.0,
)
RATE = 100.0
GROWN = {
    "worker grew from 110 to 300 MiB": {"memory_mib": {**CALM.memory_mib, "worker": 300.0}},
    "server-0 went from 60 to 500 open files": {"handles": {**CALM.handles, "server-0": 500}},
    "from 20 to 90 connections": {"connections": 90},
    "40 and later 2000 rows waited": {"waiting": 2_000},
    "outbox had 3000 and has 90000": {"dead": {**CALM.dead, "outbox": (90_000, 40)}},
    "outbox grew from 4 to 64 MiB": {"table_bytes": {**CALM.table_bytes, "outbox": 64 << 20}},
}


def test_what_moves_a_little_is_level():
    moved = replace(
        CALM,
        memory_mib={"server-0": 120.0, "worker": 115.0},
        connections=24,
        waiting=700,
        dead={"outbox": (9_000, 0), "texts": (30_000, 400_000)},
    )
    assert growth.judge([CALM] * 3, [moved] * 3, rate=RATE) == []


@pytest.mark.parametrize("said", GROWN)
def test_what_grows_is_named(said):
    found = growth.judge([CALM] * 3, [replace(CALM, **GROWN[said])] * 3, rate=RATE)
    assert len(found) == 1
    assert said in found[0]


def test_one_strange_moment_is_no_growth():
    assert growth.judge([CALM] * 3, [CALM, replace(CALM, connections=90), CALM], rate=RATE) == []


@pytest.mark.parametrize("number", [*range(10), 123_456_789])
def test_a_ticket_of_the_thousands_is_a_request_like_any_other(number):
    request = request_maker(Order(("127.0.0.1", 1), "key", "50a4", "soak", 1.0))(number)
    head, _, body = request.partition(b"\r\n\r\n")
    sale = json.loads(body)
    assert f"Content-Length: {len(body)}".encode() in head
    assert sale["external_id"] == f"50a4-soak-{number:012d}"
    assert (b"Idempotency-Key: soak-%012d" % number in head) == (number % 2 == 0)
