"""Create the SMS providers that the worker uses, and the callback URLs to which a provider sends replies and receipts.

A callback URL contains the id of the organization, a secret token and, for a delivery receipt, the id of the text.
"""

import hashlib
import hmac
from dataclasses import dataclass

from regulars.kit import ids
from regulars.kit.db import Database
from regulars.kit.public_address import PublicAddress
from regulars.kit.vault import AnyVault
from regulars.texts.providers.base import OutgoingText, Providers
from regulars.texts.providers.simulator import Simulator
from regulars.texts.providers.twilio import Twilio
from regulars.texts.settings.store import Texting, open_token


@dataclass(frozen=True, slots=True)
class Gateways:
    """The providers by name; and Twilio again, because the worker also reads its list of inbound messages."""

    providers: Providers
    twilio: Twilio
    database: Database


def open_gateways(database: Database, *, vault: AnyVault, twilio_url: str, address: PublicAddress) -> Gateways:
    """Create the providers. Without a public address there are no receipts, and the state of texts remains `sent`."""

    def find_callback_url(text: OutgoingText, texting: Texting) -> str | None:
        base = address.callback_url
        return None if base is None else receipt_url(base, text, texting)

    twilio = Twilio(
        twilio_url,
        open_token=lambda texting: open_token(vault, texting),
        callback_url=find_callback_url,
    )
    return Gateways({"simulator": Simulator(database), "twilio": twilio}, twilio, database)


def inbound_url(public_url: str, texting: Texting) -> str:
    """The URL that the retailer enters at the provider for inbound messages."""
    return _callback_url(public_url, texting, "inbound", "inbound")


def receipt_url(public_url: str, text: OutgoingText, texting: Texting) -> str:
    text_id = ids.TEXT.encode(text.text_id)
    return _callback_url(public_url, texting, text_id, f"texts/{text_id}?attempt={text.attempt}")


def _callback_url(public_url: str, texting: Texting, subject: str, path: str) -> str:
    organization = ids.ORGANIZATION.encode(texting.organization_id)
    return f"{public_url.rstrip('/')}/sms/twilio/{organization}/{_token(texting, subject)}/{path}"


def _token(texting: Texting, subject: str) -> str:
    """The secret token of a callback URL; `subject` is the id of the text, or `inbound`."""
    return hmac.new(texting.secret, b"regulars sms callback\0" + subject.encode(), hashlib.sha256).hexdigest()[:32]


def is_valid_token(texting: Texting, subject: str, token: str) -> bool:
    return hmac.compare_digest(_token(texting, subject).encode(), token.encode())
