"""Handle the HTTP requests of the SMS provider Twilio: inbound messages, and delivery receipts of texts.

The URL contains the id of the organization, a secret token and, for a delivery receipt, the id of the text. Twilio also
signs its requests. The response to a wrong URL or token is a plain 404, to a wrong signature a 403.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final
from urllib.parse import parse_qsl

from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from regulars.consent.chain import hash_number
from regulars.consent.errors import InvalidPhoneNumber
from regulars.consent.phone import read_consent_number
from regulars.inbox.receive import IncomingMessage, receive_reply
from regulars.kit import ids, log
from regulars.kit.db import CONNECTION_ERRORS, Database
from regulars.kit.public_address import PublicAddress
from regulars.texts.in_flight import wait_for_texts_in_flight
from regulars.texts.model import TextState
from regulars.texts.providers import twilio
from regulars.texts.providers.gateways import is_valid_token
from regulars.texts.receipts import apply_receipt
from regulars.texts.settings.store import Texting, load_texting

FORM_BYTES_MAX: Final = 64 << 10
FIELDS_MAX: Final = 200
# An empty response in TwiML, so that Twilio does not reply; the confirmation is sent as a separate text.
_EMPTY_TWIML: Final = '<?xml version="1.0" encoding="UTF-8"?><Response></Response>'

_log = log.get(__name__)

# Handles a request of the provider with a valid URL and signature, for the organization of the text settings.
Handle = Callable[[Request, Texting, Mapping[str, str]], Awaitable[Response]]


class Callbacks:
    """`open_token` decrypts the token of the provider account. `address` has the base URL that the provider requests:
    the provider's signature covers this URL, and behind a proxy the URL of the request differs."""

    def __init__(self, database: Database, *, address: PublicAddress, open_token: Callable[[Texting], str]) -> None:
        self._database = database
        self._address = address
        self._open_token = open_token

    def routes(self) -> list[Route]:
        return [
            Route("/sms/twilio/{organization}/{token}/inbound", self._handle_inbound, methods=["POST"]),
            Route("/sms/twilio/{organization}/{token}/texts/{text}", self._handle_receipt, methods=["POST"]),
        ]

    async def _handle_inbound(self, request: Request) -> Response:
        return await self._handle(request, self._receive_message, subject="inbound")

    async def _handle_receipt(self, request: Request) -> Response:
        return await self._handle(request, self._apply_receipt, subject=request.path_params["text"])

    async def _handle(self, request: Request, handle: Handle, *, subject: str) -> Response:
        organization_id = ids.ORGANIZATION.decode(request.path_params["organization"])
        if organization_id is None:
            return _not_found()
        try:
            form = await _read_form(request)
            async with self._database.reading() as tx:
                texting = await load_texting(tx, organization_id)
            if form is None or texting is None or not is_valid_token(texting, subject, request.path_params["token"]):
                return _not_found()
            if texting.encrypted_token is None or not self._is_signed(request, form, self._open_token(texting)):
                return PlainTextResponse("The signature does not fit.\n", 403)
            return await handle(request, texting, form)
        except ClientDisconnect:
            return Response(status_code=400)
        except CONNECTION_ERRORS as error:
            # No message is lost: the provider repeats its request, and a worker reads the provider's list of messages
            # every five minutes.
            _log.warning("callbacks.database_unavailable", error=type(error).__name__)
            return PlainTextResponse("The database cannot be reached.\n", 503, headers={"Retry-After": "5"})

    def _is_signed(self, request: Request, form: Mapping[str, str], token: str) -> bool:
        base_url = self._address.url or str(request.base_url)
        query = f"?{request.url.query}" if request.url.query else ""
        url = f"{base_url.rstrip('/')}{request.url.path}{query}"
        return twilio.is_signed(token, url, form, request.headers.get("x-twilio-signature", ""))

    async def _receive_message(self, _request: Request, texting: Texting, form: Mapping[str, str]) -> Response:
        try:
            number = read_consent_number(form.get("From", ""))
        except InvalidPhoneNumber:
            # The sender is a short code or a name, which cannot be texted and has no consent to withdraw.
            return _empty_twiml()
        incoming = IncomingMessage(
            provider="twilio",
            provider_id=form.get("MessageSid", ""),
            phone_number=number,
            body=form.get("Body", ""),
            meaning=twilio.read_opt_out_type(form),
            provider_responded=bool(form.get("OptOutType")),
        )
        async with self._database.transaction() as tx:
            await receive_reply(tx, texting.organization_id, incoming, texting=texting)
        number_hash = hash_number(texting.secret, number)
        await wait_for_texts_in_flight(self._database, texting.organization_id, [number_hash])
        return _empty_twiml()

    async def _apply_receipt(self, request: Request, texting: Texting, form: Mapping[str, str]) -> Response:
        receipt = twilio.read_receipt(form)
        text_id = ids.TEXT.decode(request.path_params["text"])
        if receipt is None or text_id is None:
            return Response(status_code=204)
        state, code = receipt
        is_stop = state is TextState.FAILED and twilio.is_stop_code(code)
        async with self._database.transaction() as tx:
            await apply_receipt(
                tx,
                texting.organization_id,
                text_id,
                state,
                provider_id=form.get("MessageSid"),
                # How often the text had been sent, from 1.
                attempt=request.query_params.get("attempt"),
                code=code,
                is_stop=is_stop,
                texting=texting,
            )
        return Response(status_code=204)


async def _read_form(request: Request) -> dict[str, str] | None:
    """The fields of the form; None if the body is not a form or is too large."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > FORM_BYTES_MAX:
            return None
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=FIELDS_MAX, errors="strict")
    except ValueError:
        return None
    return dict(pairs)


def _empty_twiml() -> Response:
    return Response(_EMPTY_TWIML, media_type="text/xml")


def _not_found() -> Response:
    return PlainTextResponse("There is nothing here.\n", 404)
