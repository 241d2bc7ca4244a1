"""The loop on a cluster of which one node is down."""

import asyncio

import psycopg
from tests.support.database import plant_catalog_of_a_cluster
from tests.support.waiting import until
from tests.work.test_loop import Letters, letters_url, post, rows, served, url

from regulars.kit.ids import new_uuid
from regulars.work.queue import Due

__all__ = ["letters_url", "url"]

# A read that meets a row of an organization on the node that is down fails; the planner tries the cheap condition first.
NODE_DOWN = """
CREATE TABLE lost (organization_id uuid PRIMARY KEY);
CREATE FUNCTION is_reached(organization uuid) RETURNS boolean LANGUAGE plpgsql COST 100000 AS $$
BEGIN
    IF EXISTS (SELECT FROM lost WHERE organization_id = organization) THEN
        RAISE EXCEPTION 'connection to the remote node failed' USING ERRCODE = '08006';
    END IF;
    RETURN true;
END $$;
CREATE VIEW letters_of_all AS SELECT * FROM letters WHERE is_reached(organization_id);
"""


def test_a_node_of_a_cluster_that_is_down_stops_no_organization_of_the_others(url):
    class OnNodes(Letters):
        due = Due(table="letters_of_all")

    reached, lost = new_uuid(), new_uuid()
    plant_catalog_of_a_cluster(url)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(NODE_DOWN)
        connection.execute("INSERT INTO lost VALUES (%s)", (lost,))
        for place, organization_id in enumerate((reached, lost)):
            connection.execute(
                "INSERT INTO organizations (id, name, created_at) VALUES (%s, %s, now())",
                (organization_id, f"Shop {place}"),
            )
            connection.execute("INSERT INTO planted_shards VALUES (%s, %s)", (organization_id, place))
            connection.execute("INSERT INTO pg_dist_placement VALUES (%s, %s)", (place, place))
    post(url, lost, "waits")
    post(url, reached, "read")

    async def scenario():
        letters = OnNodes()
        async with served(url, letters):
            await until(lambda: letters.read == [(reached, "read")])
            rows(url, "DELETE FROM lost RETURNING 1")
            await until(lambda: letters.read == [(reached, "read"), (lost, "waits")])

    asyncio.run(scenario())
