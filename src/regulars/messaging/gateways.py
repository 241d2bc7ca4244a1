"""Which providers there are, put together once for the worker."""

from dataclasses import dataclass

from regulars.kit.db import Database
from regulars.kit.vault import AnyVault
from regulars.messaging.addresses import receipt_url
from regulars.messaging.credentials import open_token
from regulars.messaging.providers.base import Providers
from regulars.messaging.providers.simulator import Simulator
from regulars.messaging.providers.twilio import Twilio


@dataclass(frozen=True, slots=True)
class Gateways:
    providers: Providers
    twilio: Twilio
    database: Database


def open_gateways(database: Database, *, vault: AnyVault, twilio_url: str, public_url: str | None) -> Gateways:
    """Without a public address there are no receipts: texts stay `sent`."""
    twilio = Twilio(
        twilio_url,
        open_token=lambda texting: open_token(vault, texting),
        callback_url=lambda text, texting: None if public_url is None else receipt_url(public_url, text, texting),
    )
    return Gateways({"simulator": Simulator(database), "twilio": twilio}, twilio, database)
