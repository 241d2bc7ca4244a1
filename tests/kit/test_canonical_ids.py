"""The database spells a canonical id as the program does."""

import random
from uuid import UUID

import pytest

from regulars.kit.ids import PROFILE, new_uuid

pytestmark = pytest.mark.anyio


async def test_the_database_spells_ids_as_the_program_does(database):
    chance = random.Random(3)
    ids = [UUID(int=0), UUID(int=2**128 - 1), new_uuid(), *(UUID(int=1 << bit) for bit in range(128))]
    ids += [UUID(int=chance.getrandbits(128)) for _ in range(1_000)]
    async with database.reading() as tx:
        rows = await tx.fetch("SELECT id, canonical_id('prof_', id) FROM unnest(%s::uuid[]) AS id", (ids,))
    assert [(row[0], PROFILE.encode(row[0])) for row in rows] == rows
    assert len(rows) == len(ids)
