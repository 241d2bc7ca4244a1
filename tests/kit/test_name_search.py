"""What a search for names finds: the same in memory and in PostgreSQL."""

import time

import pytest

from regulars.kit.columns import fill
from regulars.kit.name_search import (
    FOLDED_NAME,
    SIMILAR_CHARACTERS_MAX,
    WORDS_MAX,
    filter_names,
    find_parts,
    find_similar,
)

pytestmark = pytest.mark.anyio

PARTS = (
    ("coat", "Wool coat"),
    ("ool", "Wool coat"),
    ("coat wool", "Wool coat"),
    ("wool-1", "WOOL-1 Wool coat"),
    ("creme brul", "Crème Brûlée"),
    ("BRÛLÉE", "Creme brulee"),
    ("ete", "E\u0301te\u0301"),
    ("москв", "Москва"),
    ("서울", "서울역"),
    ("38½", "Size 38½"),
    ("straßenschuh", "Straßenschuh"),
    ("strasse", "Große Straße 1"),
    ("istanbul", "İstanbul"),
)
SIMILAR = (
    ("jaens", "Blue jeans"),
    ("jens", "Blue jeans"),
    ("jeeans", "Blue jeans"),
    ("jeams", "Blue jeans"),
    ("ejans", "Blue jeans"),
    ("blu jaens", "Blue jeans"),
    ("brulle", "Crème brûlée"),
)
NEITHER = (("teans", "Blue jeans"), ("oats", "Wool coat"), ("jea jns", "Blue jeans"), ("jaen_", "jean.*"), ("a+", "bb"))


async def _finds(database, patterns, name: str) -> bool:
    async with database.reading() as tx:
        found = await tx.fetch_value(
            fill("SELECT " + FOLDED_NAME + " ~ ALL (%s::text[])", name="%s"), (name, patterns.parts)
        )
    assert found == bool(filter_names([name], patterns, str, limit=1)), (name, patterns)
    return bool(found)


async def test_parts_of_words_and_typing_errors_are_found(database):
    for typed, name in PARTS + SIMILAR + NEITHER:
        parts, similar = find_parts(typed), find_similar(typed)
        assert parts is not None
        assert await _finds(database, parts, name) == ((typed, name) in PARTS), (typed, name)
        if (typed, name) not in PARTS:
            assert await _finds(database, similar, name) == ((typed, name) in SIMILAR), (typed, name)


def test_a_name_that_begins_with_the_word_comes_first():
    names = ["Comparis", "Grand Paris", "Lyon", "Paris"]
    patterns = find_parts("paris")
    assert patterns is not None
    assert filter_names(names, patterns, str, limit=2) == ["Grand Paris", "Paris"]


async def test_a_text_without_words_finds_nothing_and_a_long_one_takes_no_time(database):
    assert find_parts("% \0 ''") is find_similar("…") is None
    patterns = find_similar(" ".join(["abcdefghij" * (SIMILAR_CHARACTERS_MAX // 10)] * WORDS_MAX))
    assert patterns is not None
    started = time.monotonic()
    async with database.reading() as tx:
        counted = await tx.fetch_value(
            "SELECT count(*) FROM generate_series(1, 20000) AS n WHERE md5(n::text) ~ ALL (%s::text[])",
            (patterns.parts,),
        )
    assert counted == 0
    assert time.monotonic() - started < 5
