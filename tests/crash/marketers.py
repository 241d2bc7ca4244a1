"""Sends, pauses and resumes a campaign in each shop with commands during a fault, and checks its sums meanwhile."""

import json
import random
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

import psycopg
from tests.crash.processes import Process, Traps
from tests.crash.shops import Shop
from tests.crash.world import World
from tests.support.run_async import run_async

from regulars.campaigns.definition import read_definition
from regulars.campaigns.manage import create_campaign
from regulars.kit.db import Database
from regulars.kit.ids import CAMPAIGN, SEGMENT
from regulars.segments.definition import read_definition as read_segment
from regulars.segments.saved.manage import create_segment

REACHABLE: Final = {
    "name": "Everybody",
    "match": {"type": "all", "of": [{"type": "consent", "state": "may_be_texted"}]},
}
# A rate that feeds the recipients of a trial in several transactions; or no rate.
RATES: Final = (8 * 3_600, 20 * 3_600, None)
CONFIRMED: Final = 100_000
HOLDOUT_PERCENT: Final = 10
LAST_DIAL_S: Final = 2.0
PAUSED_S: Final = LAST_DIAL_S + 0.5
WATCHED_EVERY_S: Final = 0.05
COMMAND_SECONDS_MAX: Final = 60
# Customers of the global holdout are in no arm, and the totals of arms do not count them.
WATCHED: Final = """
SELECT campaign.state, campaign.frozen_at IS NOT NULL, campaign.recipients,
    (SELECT coalesce(sum(recipients), 0) FROM campaign_totals t
     WHERE t.organization_id = campaign.organization_id AND t.campaign_id = campaign.id AND arm >= 0),
    (SELECT min(recipients) FROM campaign_totals t
     WHERE t.organization_id = campaign.organization_id AND t.campaign_id = campaign.id),
    (SELECT count(*) FROM campaign_recipients r
     WHERE r.organization_id = campaign.organization_id AND r.campaign_id = campaign.id AND arm >= 0)
FROM campaigns campaign WHERE organization_id = %s
"""


@dataclass
class Campaign:
    """The actions of the marketer in monotonic time, and what they observed."""

    id: UUID
    sent_at: float = float("inf")
    # When the audience was first seen as stored.
    frozen_at: float = float("inf")
    # From the response to a pause until the command that ended it.
    pauses: list[tuple[float, float]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    looks: int = 0


def draft_campaign(url: str, shop: Shop, *, texts_per_hour: int | None) -> Campaign:
    """Creates a campaign to all customers who may be texted, with two variants and a holdout."""

    async def work() -> UUID:
        database = Database(url, pool_max=1)
        await database.open()
        try:
            async with database.transaction() as tx:
                segment = await create_segment(tx, shop.organization_id, read_segment(json.dumps(REACHABLE).encode()))
                given = {
                    "name": f"Sale {shop.tag}",
                    "include": [SEGMENT.encode(segment.row.id)],
                    "variants": [
                        {"share": 50, "text": '{{ profile.first_name | default("Bonjour") }}, soldes'},
                        {"share": 50, "text": "Soldes"},
                    ],
                    "holdout_percent": HOLDOUT_PERCENT,
                    **({} if texts_per_hour is None else {"texts_per_hour": texts_per_hour}),
                }
                made = await create_campaign(tx, shop.organization_id, read_definition(json.dumps(given).encode()))
                return made.row.id
        finally:
            await database.close()

    return Campaign(run_async(work()))


class Marketer(threading.Thread):
    """Sends the campaign of one shop, checks it constantly, and pauses it now and then."""

    def __init__(self, world: World, shop: Shop, *, seed: int, rates: Sequence[int | None] = RATES) -> None:
        super().__init__(name=f"marketer-{shop.tag}", daemon=True)
        self._world = world
        self._shop = shop
        self._chance = random.Random(f"{seed}/{shop.tag}")
        self.campaign = draft_campaign(world.url, shop, texts_per_hour=self._chance.choice(rates))
        self.stop = threading.Event()

    def run(self) -> None:
        try:
            self._work()
        except Exception as error:  # noqa: BLE001  # it is a finding of the trial, whatever it is
            self.campaign.faults.append(f"STUCK: the marketer of {self._shop.tag} gave up: {error!r}")

    def _work(self) -> None:
        self.stop.wait(self._chance.uniform(0.0, 0.4))
        self.send()
        pause_at = time.monotonic() + self._chance.uniform(0.5, 3.0)
        may_pause = self._chance.random() < 0.6
        while not self.stop.wait(WATCHED_EVERY_S):
            self._watch()
            if may_pause and time.monotonic() > pause_at:
                may_pause = False
                self._pause_for_a_while()

    def send(self) -> None:
        """Repeats the command until the campaign is sent; a command whose response was lost may have succeeded."""
        while not self.command("send", "--recipients", str(CONFIRMED)):
            if self._wait_for_state() != "draft":
                break
        self.campaign.sent_at = time.monotonic()

    def _pause_for_a_while(self) -> None:
        if not self.command("pause"):
            return
        paused_at = time.monotonic()
        while time.monotonic() < paused_at + PAUSED_S:
            self._watch()
            time.sleep(WATCHED_EVERY_S)
        self.resume(paused_at)

    def resume(self, paused_at: float | None = None) -> None:
        """Repeats the command until the campaign is no longer paused."""
        if paused_at is not None:
            self.campaign.pauses.append((paused_at, time.monotonic()))
        while self._wait_for_state() == "paused":
            self.command("resume")

    def command(self, act: str, *options: str, traps: Traps = ()) -> bool:
        """Runs a command; returns whether it succeeded."""
        name = f"{act}-{self._shop.tag}"
        arguments = ["campaign", act, "-o", f"Shop {self._shop.tag}", CAMPAIGN.encode(self.campaign.id), *options]
        process = Process(name, self._world.folder, arguments, self._world.environment)
        return process.run(traps=traps, seconds=COMMAND_SECONDS_MAX) == 0

    def _wait_for_state(self) -> str:
        """Without a database every command fails, which costs as much as one that succeeds."""
        while (state := self._state()) is None:
            time.sleep(WATCHED_EVERY_S)
        return state

    def _state(self) -> str | None:
        """The state, or None if the database does not respond."""
        try:
            [(state,)] = self._world.rows("SELECT state FROM campaigns WHERE id = %s", self.campaign.id)
        except psycopg.OperationalError:
            return None
        return str(state)

    def _watch(self) -> None:
        """Checks C4 now, and makes campaigns due that wait for the build of the columns."""
        try:
            self._world.execute(
                "UPDATE campaigns SET freeze_at = now() WHERE id = %s AND owner IS NULL AND freeze_at > now()",
                self.campaign.id,
            )
            [seen] = self._world.rows(WATCHED, self._shop.organization_id)
        except psycopg.OperationalError:
            return
        state, is_frozen, recipients, counted, least, stored = seen
        self.campaign.looks += 1
        if is_frozen:
            self.campaign.frozen_at = min(self.campaign.frozen_at, time.monotonic())
        if recipients is not None and counted != recipients:
            self.campaign.faults.append(f"C4: {state} with {recipients} recipients, and outcomes add up to {counted}")
        if (least or 0) < 0 or stored > counted:
            self.campaign.faults.append(f"C4: {state} counts {least} of an outcome, and {counted} of {stored} rows")


def end_marketers(marketers: Sequence[Marketer]) -> None:
    """Stops the marketers and resumes paused campaigns."""
    for it in marketers:
        it.stop.set()
    for it in marketers:
        it.join(2 * COMMAND_SECONDS_MAX)
        assert not it.is_alive(), f"STUCK: {it.name} got no answer"
        it.resume()


def break_command(scene: Any, how: str) -> bool:
    """Interrupts a pause or a cancellation; the next command must find the campaign unchanged."""
    marketer = scene.chance.choice(scene.marketers)
    act = scene.chance.choice(("pause", "pause", "cancel"))
    until = time.monotonic() + COMMAND_SECONDS_MAX
    while marketer.campaign.sent_at > time.monotonic() and time.monotonic() < until:
        time.sleep(WATCHED_EVERY_S)
    trap = {"place": "campaign.stopped", "act": how, "seconds": 0.5}
    is_done = marketer.command(act, traps=[trap])
    assert is_done == (how == "sleep"), f"C3: {act} ended {'well' if is_done else 'badly'} after {how}"
    if how == "kill":
        scene.world.count("kill at campaign.stopped")
    return True
