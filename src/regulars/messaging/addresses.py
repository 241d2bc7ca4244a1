"""The addresses a provider calls: they name the organization, perhaps a text, and hold a part nobody can guess."""

import hashlib
import hmac

from regulars.kit import ids
from regulars.messaging.providers.base import Outgoing
from regulars.messaging.settings.store import Texting


def inbound_url(public_url: str, texting: Texting) -> str:
    """The address to enter at the provider for messages that come in."""
    return _url(public_url, texting, "inbound", "inbound")


def receipt_url(public_url: str, text: Outgoing, texting: Texting) -> str:
    text_id = ids.TEXT.encode(text.text_id)
    return _url(public_url, texting, text_id, f"texts/{text_id}?attempt={text.attempt}")


def _url(public_url: str, texting: Texting, subject: str, rest: str) -> str:
    organization = ids.ORGANIZATION.encode(texting.organization_id)
    return f"{public_url.rstrip('/')}/sms/twilio/{organization}/{_token(texting, subject)}/{rest}"


def _token(texting: Texting, subject: str) -> str:
    return hmac.new(texting.secret, b"regulars sms callback\0" + subject.encode(), hashlib.sha256).hexdigest()[:32]


def is_ours(texting: Texting, subject: str, token: str) -> bool:
    return hmac.compare_digest(_token(texting, subject).encode(), token.encode())
