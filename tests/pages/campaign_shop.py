"""A shop whose customers may be texted at any hour, with a segment of all of them and the analysis process at hand."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import UUID

from tests.pages.segment_shop import SegmentShop
from tests.support import samples
from tests.support.client import Api
from tests.support.drain_queues import SETTINGS, drain_queues
from tests.support.server import Server
from tests.support.texts import open_at_any_hour
from tests.support.visitor import Visitor

from regulars.campaigns import manage
from regulars.campaigns.definition import read_definition
from regulars.kit.ids import CAMPAIGN

TEXTED = {"r~kind": "all", "r.0~kind": "consent", "r.0~state": "may_be_texted"}


@dataclass(frozen=True)
class CampaignShop:
    shop: SegmentShop
    data_dir: Path
    segment: str
    numbers: tuple[str, ...]

    @property
    def organization_id(self) -> UUID:
        return self.shop.organization_id

    def draft(self, **more: Any) -> str:
        given = {
            "name": "Spring preview",
            "include": [self.segment],
            "variants": [{"text": "Hello {{ profile.first_name }}"}],
            **more,
        }
        definition = read_definition(json.dumps(given).encode())
        made = self.shop.act(
            lambda tx: manage.create_campaign(tx, self.organization_id, definition, created_by="ann@shop.example")
        )
        return f"/campaigns/{CAMPAIGN.encode(made.row.id)}"

    def act(self, path: str, act: Any, **more: Any) -> Any:
        """A use case on the campaign of a page."""
        identifier = CAMPAIGN.decode(path.split("/")[2])
        return self.shop.act(lambda tx: act(tx, self.organization_id, identifier, **{"by": "ann@shop.example", **more}))

    def send(self, *, recipients: int | None = None, **more: Any) -> str:
        path = self.draft(**more)
        confirmed = len(self.numbers) if recipients is None else recipients
        self.act(path, manage.schedule, confirmed_recipients=confirmed, is_now=True)
        return path

    def work(self, times: int = 4) -> None:
        """What the worker does, in as many turns as a campaign needs from its start to its last outcome."""
        settings = replace(SETTINGS, data_dir=self.data_dir)
        for _ in range(times):
            drain_queues(self.shop.database_url, self.organization_id, settings)


def open_campaign_shop(
    api: Api, visitor: Visitor, server: Server, database_url: str, *, customers: int = 3
) -> CampaignShop:
    assert api.tenant is not None
    store = api.post("/v1/stores", samples.store(name="Lyon République")).json()["id"]
    shop = SegmentShop(api, database_url, api.tenant.organization_id, store)
    open_at_any_hour(database_url, shop.organization_id)
    numbers = tuple(samples.phone() for _ in range(customers))
    for place, number in enumerate(numbers):
        external_id = samples.unique("C")
        profile = {"external_id": external_id, "first_name": f"Zoé{place}", "phone_number": number}
        assert api.post("/v1/profiles", profile).status in {200, 201}
        consent = {
            "phone_number": number,
            "consent_source": "WEBSITE",
            "consented_at": samples.ago(days=2),
            "profile_id": external_id,
        }
        assert api.post("/v1/subscriptions/opt-in", consent).status in {200, 201}
    shop.work()
    saved = visitor.post("/segments/save", name="Everybody", **TEXTED)
    assert saved.status_code == 303, saved.text
    shop.prepare()
    segment = saved.headers["location"].rpartition("/")[2]
    return CampaignShop(shop, Path(server.environment["REGULARS_DATA_DIR"]), segment, numbers)
