import pytest
from tests.http.workshop import Workshop


@pytest.fixture
async def workshop(database, organization_id):
    async with database.reading() as tx:
        await tx.execute("CREATE TABLE things (name text PRIMARY KEY, key text)")
    made = Workshop(database, organization_id)
    yield made
    made.gate.set()
    await made.writes.in_flight.coalescer.drain()
