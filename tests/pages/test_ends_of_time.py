"""A till whose clock was never set sends the first moment there is. In half of the zones that falls on a day of no
year, and every page opens all the same."""

import psycopg
import pytest
from tests.support import samples
from tests.support.crawl import crawl
from tests.support.drain_queues import drain_queues

from regulars.kit.settings import Settings
from regulars.server import page_table
from regulars.web.access import Role

FIRST, SECOND, LAST = "0001-01-01T00:00:00Z", "0001-01-01T00:00:01Z", "9999-12-31T23:59:59Z"
TABLE = page_table(Settings())


@pytest.mark.usefixtures("analysis")
@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Tokyo"])
def test_every_page_opens(api, visitor_as, api_database_url, zone):
    with psycopg.connect(api_database_url, autocommit=True) as connection:
        connection.execute("UPDATE organizations SET time_zone = %s WHERE id = %s", (zone, api.tenant.organization_id))
    visitor = visitor_as(Role.OWNER)
    store = api.post("/v1/stores", samples.store()).json()
    customer = api.post("/v1/profiles", samples.profile(attributes={"birthday": FIRST, "until": LAST})).json()
    for kind in ("PURCHASE", "RETURN"):
        sale = samples.sale(store["id"], profile_id=customer["id"], type=kind, occurred_at=FIRST)
        assert api.post("/v1/sales-events", sale).status == 201
    consent = samples.opt_in(profile_id=customer["id"], consented_at=FIRST)
    assert api.post("/v1/subscriptions/opt-in", consent).status == 201
    withdrawal = {"phone_number": consent["phone_number"], "unsubscribed_at": SECOND}
    assert api.post("/v1/subscriptions/opt-out", withdrawal).status == 200
    drain_queues(api_database_url, api.tenant.organization_id)
    for name, key in (("Born", "birthday"), ("Until", "until")):
        visitor.post(f"/attributes/{key}/preview", type="date")
        near = {"r~kind": "all", "r.0~kind": "attribute", "r.0~key": key, "r.0~cmp": "is_set"}
        assert visitor.post("/segments/save", name=name, **near).status_code == 303
    drain_queues(api_database_url, api.tenant.organization_id)
    seen = crawl(visitor, TABLE)
    assert [(one.path, one.status) for one in seen if one.status >= 500] == []
    assert len([one for one in seen if one.is_html]) > len(TABLE) / 4
