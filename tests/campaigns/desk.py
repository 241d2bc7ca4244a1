"""Drive campaigns in an organization of its own: queues are given turns by hand."""

import asyncio
import json
from datetime import datetime
from typing import Any
from uuid import UUID

from tests.messaging.desk import Desk as TextDesk

from regulars.campaigns import manage
from regulars.campaigns.definition import Definition, read_definition
from regulars.campaigns.model import CampaignRow
from regulars.kit.db import Database
from regulars.kit.ids import SEGMENT
from regulars.segments.definition import read_definition as read_segment
from regulars.segments.saved.manage import create_segment

EVERYBODY = {"type": "consent", "state": "may_be_texted"}


def definition(segment: str, **more: Any) -> Definition:
    given = {"name": "Sale", "include": [segment], "variants": [{"text": "Hello"}], **more}
    return read_definition(json.dumps(given).encode())


class Desk(TextDesk):
    def __init__(self, runner: asyncio.Runner, database: Database) -> None:
        super().__init__(runner, database)
        self.everybody = self.segment(EVERYBODY)

    def segment(self, *conditions: dict[str, Any], name: str = "Everybody") -> str:
        match = {"type": "all", "of": list(conditions)}
        given = read_segment(json.dumps({"name": name, "match": match}).encode())
        made = self.do(lambda tx: create_segment(tx, self.organization_id, given))
        return SEGMENT.encode(made.row.id)

    def draft(self, **more: Any) -> UUID:
        given = definition(self.everybody, **more)
        return self.do(lambda tx: manage.create_campaign(tx, self.organization_id, given, created_by="ann")).row.id

    def faults(self, **more: Any) -> list[tuple[str, str]]:
        given = definition(self.everybody, **more)
        found = self.do(lambda tx: manage.check_definition(tx, self.organization_id, given))
        return [(fault.place, fault.message) for fault in found]

    def act(self, act: Any, campaign_id: UUID, *, now: datetime | None = None, **more: Any) -> CampaignRow:
        return self.do(lambda tx: act(tx, self.organization_id, campaign_id, by="ann", **more), now=now)

    def load(self, campaign_id: UUID) -> manage.Campaign:
        return self.do(lambda tx: manage.load_campaign(tx, self.organization_id, campaign_id))
