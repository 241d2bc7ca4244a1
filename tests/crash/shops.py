"""Creates organizations for a trial, each with a store, customers who may be texted, live journeys and a webhook endpoint."""

import json
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urlencode
from uuid import UUID

from tests.crash.journal import Call
from tests.support.desk import ORIGIN
from tests.support.gateway import ALWAYS
from tests.support.run_async import run_async
from tests.texts.fake_twilio import ACCOUNT, TOKEN

from regulars.consent.opt_in import Consent, opt_in
from regulars.journeys import manage as journeys
from regulars.journeys.definition import read_definition
from regulars.kit.db import Database, Tx
from regulars.kit.ids import ByExternalId, new_uuid
from regulars.kit.ssrf import AddressPolicy
from regulars.kit.vault import Vault
from regulars.organizations.manage import create_key, create_organization
from regulars.profiles.model import ProfileUpsert
from regulars.profiles.write import upsert_profiles
from regulars.texts.providers.gateways import inbound_url
from regulars.texts.providers.twilio import sign
from regulars.texts.settings.model import OptOutNotice, SmsSettings, TwilioAccount
from regulars.texts.settings.store import Texting, load_texting, save_texting, seal_token
from regulars.webhooks.manage import create_endpoint

KEY: Final = "a key for tests, of more than 32 characters"
CUSTOMERS: Final = 24
STORE: Final = "PARIS-01"
BOUGHT: Final = {
    "name": "Thanks", "trigger": "purchase", "reentry": {"policy": "always"},
    "steps": [{"do": "send_text", "id": "thanks", "text": "Merci"}],
}  # fmt: skip
JOINED: Final = {
    "name": "Welcome", "trigger": "opt_in", "reentry": {"policy": "always"},
    "steps": [{"do": "send_text", "id": "welcome", "text": "Bienvenue"}],
}  # fmt: skip


@dataclass(frozen=True)
class Shop:
    tag: str
    organization_id: UUID
    key: str
    hook_secret: str
    texting: Texting
    public_url: str

    def number(self, customer: int) -> str:
        """The phone number of a customer who may be texted from the start; it contains the tag of the shop."""
        return f"+336{int(self.tag, 16) % 10**5:05d}{customer:03d}"

    def customer(self, number: int) -> str:
        return f"{self.tag}-customer-{number}"

    def stop(self, number: str) -> Call:
        """The provider's call when a customer replies STOP; a repetition has the same message id."""
        url = inbound_url(self.public_url, self.texting)
        form = {"From": number, "Body": "STOP", "MessageSid": f"SM{self.tag}{number[1:]}"}
        path = url.removeprefix(self.public_url)
        return Call(path, urlencode(form), None, number, tag=self.tag, signature=sign(TOKEN, url, form))


def open_shops(database_url: str, tags: list[str], *, hooks_url: str, public_url: str) -> list[Shop]:
    async def work() -> list[Shop]:
        database = Database(database_url, pool_max=2)
        await database.open()
        try:
            return [await _open(database, tag, hooks_url=hooks_url, public_url=public_url) for tag in tags]
        finally:
            await database.close()

    return run_async(work())


async def _open(database: Database, tag: str, *, hooks_url: str, public_url: str) -> Shop:
    async with database.connection() as connection:
        organization = await create_organization(connection, f"Shop {tag}")
        _, secret = await create_key(connection, organization.id, "till")
    async with database.transaction() as tx:
        created = await create_endpoint(
            tx,
            organization.id,
            url=f"{hooks_url}/{tag}",
            event_types=("profile.*", "subscription.*"),
            policy=AddressPolicy(["127.0.0.0/8"]),
            vault=Vault(KEY),
        )
        texting = await _set_texting(tx, organization.id)
        shop = Shop(tag, organization.id, secret, created.secret, texting, public_url)
        await _people(tx, shop)
    async with database.transaction() as tx:
        for given in (BOUGHT, JOINED):
            journey = await journeys.create_journey(
                tx, organization.id, read_definition(json.dumps({**given, "name": f"{given['name']} {tag}"}).encode())
            )
            await journeys.activate(tx, organization.id, journey.row.id)
    return shop


async def _set_texting(tx: Tx, organization_id: UUID) -> Texting:
    settings = SmsSettings(
        brand="Shop",
        rules={"FR": ALWAYS},
        caps=(),
        notices={"FR": OptOutNotice("STOP 36111", "36111")},
        twilio=TwilioAccount(ACCOUNT, "Shop"),
    )
    found = await load_texting(tx, organization_id)
    if found is None:
        raise AssertionError("an organization has its texting")
    sealed = seal_token(Vault(KEY), organization_id, TOKEN)
    texting = replace(found, provider="twilio", settings=settings, encrypted_token=sealed)
    await save_texting(tx, organization_id, texting)
    return texting


async def _people(tx: Tx, shop: Shop) -> None:
    await tx.execute(
        "INSERT INTO stores (organization_id, id, external_id, name, created_at, updated_at)"
        " VALUES (%s, %s, %s, 'Rivoli', now(), now())",
        (shop.organization_id, new_uuid(), STORE),
    )
    upserts = [ProfileUpsert(external_id=shop.customer(number)) for number in range(CUSTOMERS)]
    await upsert_profiles(tx, shop.organization_id, upserts)
    consents = [
        Consent(
            phone_number=shop.number(number),
            source="OTHER",
            consented_at=tx.now,
            origin=ORIGIN,
            profile=ByExternalId(shop.customer(number)),
        )
        for number in range(CUSTOMERS)
    ]
    await opt_in(tx, shop.organization_id, consents, secret=shop.texting.secret)
