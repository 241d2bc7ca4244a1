"""The client of the SMS provider Twilio: send texts, read delivery receipts and inbound messages.

The response to a send request only says whether Twilio accepted the text; a receipt says whether it was delivered.
"""

import base64
import hashlib
import hmac
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import quote, urlsplit

import aiohttp
import msgspec

from regulars.consent.stop_words import Meaning
from regulars.kit.http_client import describe_network_error, read_http_date, read_retry_after
from regulars.kit.vault import VaultError
from regulars.texts.model import TextState
from regulars.texts.number_location import locate_number
from regulars.texts.providers.base import (
    RESPONSE_WITHIN_S,
    Accepted,
    NotAuthorized,
    NotReached,
    Outcome,
    OutgoingText,
    Refused,
    Unclear,
)
from regulars.texts.settings.senders import is_name, is_service
from regulars.texts.settings.store import Texting

# The longest time for which Twilio tries to deliver a text: ten hours.
VALIDITY_S_MAX: Final = 36_000
RESPONSE_BYTES_MAX: Final = 64 << 10
PAGE_MESSAGES: Final = 500
PAGE_SENDERS: Final = 500
# "Attempt to send to unsubscribed recipient": Twilio received a STOP that did not reach us.
_UNSUBSCRIBED: Final = 21610
# "This 'From' number has exceeded the maximum number of queued messages."
_QUEUE_FULL: Final = 21611
# Wrong credentials, an account that is suspended or closed, or an IP address that may not use the account.
_ACCOUNT_REFUSED: Final = frozenset({20003, 20005, 20006, 20008})
_UNAUTHORIZED: Final = 401
_TOO_MANY_REQUESTS: Final = 429
# HTTP statuses below 300 are successes, and from 300 to 499 refusals.
_REFUSAL_STATUS_MIN: Final = 300
_SERVER_ERROR_MIN: Final = 500
_OPT_OUT_TYPES: Final = {"STOP": Meaning.STOP, "START": Meaning.START, "HELP": Meaning.HELP}
_STATES: Final = {
    "sent": TextState.SENT,
    "delivered": TextState.DELIVERED,
    "read": TextState.DELIVERED,
    "undelivered": TextState.FAILED,
    "failed": TextState.FAILED,
}


@dataclass(frozen=True, slots=True)
class InboundMessage:
    provider_id: str
    phone_number: str
    body: str
    sent_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class InboundPage:
    """The inbound messages of one page of Twilio's list, newest first."""

    messages: Sequence[InboundMessage]
    next_page: str | None

    def is_before(self, time: datetime) -> bool:
        """Whether all messages of this page, and so of all following pages, are older than `time`."""
        return bool(self.messages) and all((message.sent_at or time) < time for message in self.messages)


class _SendResponse(msgspec.Struct, frozen=True):
    sid: str = ""
    code: int | None = None
    message: str = ""


class _ListedMessage(msgspec.Struct, frozen=True):
    sid: str
    direction: str
    body: str = ""
    from_: str = msgspec.field(name="from", default="")
    date_sent: str | None = None


class _MessagePage(msgspec.Struct, frozen=True):
    messages: list[_ListedMessage] = []
    next_page_uri: str | None = None


class _Sender(msgspec.Struct, frozen=True):
    phone_number: str = ""
    short_code: str = ""


class _Meta(msgspec.Struct, frozen=True):
    next_page_url: str | None = None


class _SenderPage(msgspec.Struct, frozen=True):
    phone_numbers: list[_Sender] = []
    short_codes: list[_Sender] = []
    meta: _Meta = _Meta()


class Twilio:
    """`open_token` decrypts the token of the account; `callback_url` returns the URL for the receipts of a text."""

    def __init__(
        self,
        base_url: str,
        *,
        open_token: Callable[[Texting], str],
        callback_url: Callable[[OutgoingText, Texting], str | None],
    ) -> None:
        self._base_url = base_url.rstrip("/")
        self._open_token = open_token
        self._callback_url = callback_url
        self._session: aiohttp.ClientSession | None = None

    async def send(self, text: OutgoingText, texting: Texting) -> Outcome:
        account = texting.settings.twilio
        if account is None or texting.encrypted_token is None:
            return NotAuthorized("The account of the provider is not set.")
        form = {"To": text.phone_number, "Body": text.body, "ValidityPeriod": str(_validity_s(text))}
        sender = texting.settings.sender_of(locate_number(text.phone_number).country) or account.sender
        form["MessagingServiceSid" if is_service(sender) else "From"] = sender
        callback = self._callback_url(text, texting)
        if callback is not None:
            form["StatusCallback"] = callback
        try:
            url, headers = self._messages_url(account.account_sid), self._headers(texting)
            async with self._open_session().post(url, data=form, headers=headers, allow_redirects=False) as response:
                body = await response.content.read(RESPONSE_BYTES_MAX)
                retry_after = read_retry_after(response.headers.get("Retry-After"), now=text.sent_at)
                return _read_outcome(response.status, body, retry_after)
        except VaultError:
            return NotAuthorized("The token of the account cannot be opened with this key.")
        except aiohttp.ClientConnectorError as error:
            return NotReached(describe_network_error(error))
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return Unclear(describe_network_error(error))

    async def list_senders(self, texting: Texting) -> Sequence[str]:
        """The numbers and short codes to which people reply: our senders, and the numbers of our messaging services."""
        if texting.settings.twilio is None or texting.encrypted_token is None:
            return []
        numbers: list[str] = []
        for sender in texting.settings.all_senders():
            if is_service(sender):
                numbers += await self._list_service_senders(sender, texting)
            elif not is_name(sender):
                numbers.append(sender)
        return list(dict.fromkeys(numbers))

    async def _list_service_senders(self, service: str, texting: Texting) -> Sequence[str]:
        numbers: list[str] = []
        for kind in ("PhoneNumbers", "ShortCodes"):
            # Messaging services have their own host.
            host = self._base_url.replace("://api.", "://messaging.", 1)
            url: str | None = f"{host}/v1/Services/{quote(service, safe='')}/{kind}?PageSize={PAGE_SENDERS}"
            while url is not None:
                page = msgspec.json.decode(await self._get(url, texting), type=_SenderPage)
                numbers += [
                    sender.phone_number or sender.short_code for sender in (*page.phone_numbers, *page.short_codes)
                ]
                # Only the path and query of the next URL are used, with our configured host, so that the token is not
                # sent to another host.
                next_url = page.meta.next_page_url
                url = None if next_url is None else host + urlsplit(next_url)._replace(scheme="", netloc="").geturl()
        return numbers

    async def read_inbound(
        self, texting: Texting, *, sender: str, since: datetime, page: str | None = None
    ) -> InboundPage:
        """A page of the messages to one of our senders: the first page since the day of `since`, or with `page` the
        page to which an earlier page refers."""
        account = texting.settings.twilio
        if account is None:
            return InboundPage([], None)
        if page is None:
            day = since.strftime("%Y-%m-%d")
            query = f"DateSent%3E={day}&PageSize={PAGE_MESSAGES}&To={quote(sender, safe='')}"
            url = f"{self._messages_url(account.account_sid)}?{query}"
        else:
            url = self._base_url + page
        listed = msgspec.json.decode(await self._get(url, texting), type=_MessagePage)
        messages = [
            InboundMessage(message.sid, message.from_, message.body, read_http_date(message.date_sent))
            for message in listed.messages
            if message.direction == "inbound"
        ]
        return InboundPage(messages, listed.next_page_uri)

    async def _get(self, url: str, texting: Texting) -> bytes:
        async with self._open_session().get(url, headers=self._headers(texting), allow_redirects=False) as response:
            response.raise_for_status()
            return await response.read()

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                # No limit, since waiting for a free connection would look as if the provider did not respond.
                connector=aiohttp.TCPConnector(limit=0),
                timeout=aiohttp.ClientTimeout(total=RESPONSE_WITHIN_S),
                trust_env=False,
                auto_decompress=True,
            )
        return self._session

    def _messages_url(self, account_sid: str) -> str:
        return f"{self._base_url}/2010-04-01/Accounts/{quote(account_sid, safe='')}/Messages.json"

    def _headers(self, texting: Texting) -> dict[str, str]:
        account = texting.settings.twilio
        if account is None or texting.encrypted_token is None:
            raise AssertionError("called only if an account is set")
        return {"Authorization": aiohttp.encode_basic_auth(account.account_sid, self._open_token(texting))}


def sign(token: str, url: str, form: Mapping[str, str]) -> str:
    """The signature of a callback: over the URL and all form fields with their values, sorted by name."""
    message = url + "".join(name + form[name] for name in sorted(form))
    return base64.b64encode(hmac.digest(token.encode(), message.encode(), hashlib.sha1)).decode()


def is_signed(token: str, url: str, form: Mapping[str, str], signature: str) -> bool:
    return hmac.compare_digest(sign(token, url, form).encode(), signature.encode())


def read_receipt(form: Mapping[str, str]) -> tuple[TextState, str | None] | None:
    """The state that a receipt reports, with Twilio's error code; None for intermediate states."""
    state = _STATES.get(form.get("MessageStatus", ""))
    return None if state is None else (state, form.get("ErrorCode") or None)


def read_opt_out_type(form: Mapping[str, str]) -> Meaning | None:
    """Twilio's own classification of an inbound message; if there is one, Twilio has already replied to it."""
    return _OPT_OUT_TYPES.get(form.get("OptOutType", "").upper())


def is_stop_code(code: str | None) -> bool:
    return code == str(_UNSUBSCRIBED)


def _read_outcome(status: int, body: bytes, retry_after: timedelta | None) -> Outcome:
    try:
        # PostgreSQL does not accept NUL characters in strings.
        response = msgspec.json.decode(body.replace(b"\\u0000", b""), type=_SendResponse)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        response = _SendResponse()
    if status == _TOO_MANY_REQUESTS:
        return NotReached("The provider is rate limiting.", retry_after, is_busy=True)
    if status < _REFUSAL_STATUS_MIN and response.sid:
        return Accepted(response.sid)
    if status == _UNAUTHORIZED or (status >= _REFUSAL_STATUS_MIN and response.code in _ACCOUNT_REFUSED):
        reason = " ".join(f"{response.code or status} {response.message}".split())[:200].rstrip(".")
        return NotAuthorized(f"Twilio refused the account: {reason}.")
    if _REFUSAL_STATUS_MIN <= status < _SERVER_ERROR_MIN and response.code == _QUEUE_FULL:
        return NotReached("The provider's queue is full.", retry_after, is_busy=True)
    if _REFUSAL_STATUS_MIN <= status < _SERVER_ERROR_MIN:
        code = str(response.code or status)
        return Refused(code, response.message[:200], is_stop=response.code == _UNSUBSCRIBED)
    return Unclear(f"The provider responded with {status}.")


def _validity_s(text: OutgoingText) -> int:
    return max(1, min(VALIDITY_S_MAX, int((text.until - text.sent_at) / timedelta(seconds=1))))
