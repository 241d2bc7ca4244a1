"""Where a provider calls us: neither a key nor JSON, so a kind of route beside the API and the pages.

An address carries the organization, for a receipt our text as well, and a part that nobody can guess. On top of that
the provider signs what it sends. Anything that does not fit is a plain 404 or 403 and is looked at no further.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final
from urllib.parse import parse_qsl
from uuid import UUID

from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from regulars.consent.chain import hash_number
from regulars.consent.errors import InvalidPhoneNumber
from regulars.consent.phone import read_consent_number
from regulars.kit import ids, log
from regulars.kit.db import CONNECTION_ERRORS, Database
from regulars.messaging.addresses import is_ours
from regulars.messaging.inbox.receive import Incoming, receive
from regulars.messaging.model import State
from regulars.messaging.providers import twilio
from regulars.messaging.quiet import wait_until_quiet
from regulars.messaging.receipts import note_receipt
from regulars.messaging.settings.store import Texting, load_texting

FORM_BYTES_MAX: Final = 64 << 10
FIELDS_MAX: Final = 200
# An empty answer in Twilio's own language: it says nothing to the sender, who gets our confirmation as a text.
_NOTHING_TO_SAY: Final = '<?xml version="1.0" encoding="UTF-8"?><Response></Response>'

_log = log.get(__name__)

Handle = Callable[["_Call"], Awaitable[Response]]


class Callbacks:
    """`open_token` unseals an account's token; `public_url` is the address that the provider was given, where it is
    set: behind a proxy the address of a request is another one, and a signature covers the address."""

    def __init__(self, database: Database, *, public_url: str | None, open_token: Callable[[Texting], str]) -> None:
        self._database = database
        self._public_url = public_url
        self._open_token = open_token

    def routes(self) -> list[Route]:
        return [
            Route("/sms/twilio/{organization}/{token}/inbound", self._inbound, methods=["POST"]),
            Route("/sms/twilio/{organization}/{token}/texts/{text}", self._receipt, methods=["POST"]),
        ]

    async def _inbound(self, request: Request) -> Response:
        return await self._answer(request, self._take_in, subject="inbound")

    async def _receipt(self, request: Request) -> Response:
        return await self._answer(request, self._note, subject=request.path_params["text"])

    async def _answer(self, request: Request, handle: Handle, *, subject: str) -> Response:
        organization_id = ids.ORGANIZATION.decode(request.path_params["organization"])
        if organization_id is None:
            return _not_found()
        try:
            form = await _read_form(request)
            async with self._database.reading() as tx:
                texting = await load_texting(tx, organization_id)
            if form is None or texting is None or not is_ours(texting, subject, request.path_params["token"]):
                return _not_found()
            if texting.sealed is None or not self._is_signed(request, form, self._open_token(texting)):
                return PlainTextResponse("The signature does not fit.\n", 403)
            return await handle(_Call(organization_id, texting, form, subject, request.query_params.get("attempt")))
        except ClientDisconnect:
            return Response(status_code=400)
        except CONNECTION_ERRORS as error:
            # The provider comes again, and if it does not, its list of messages is read every five minutes.
            _log.warning("callbacks.database_unavailable", error=type(error).__name__)
            return PlainTextResponse("The database cannot be reached.\n", 503, headers={"Retry-After": "5"})

    def _is_signed(self, request: Request, form: Mapping[str, str], token: str) -> bool:
        base_url = self._public_url or str(request.base_url)
        query = f"?{request.url.query}" if request.url.query else ""
        url = f"{base_url.rstrip('/')}{request.url.path}{query}"
        return twilio.is_signed(token, url, form, request.headers.get("x-twilio-signature", ""))

    async def _take_in(self, call: "_Call") -> Response:
        form = call.form
        try:
            number = read_consent_number(form.get("From", ""))
        except InvalidPhoneNumber:
            # A short code or a name wrote to us: nobody who could be texted, or withdraw.
            return _nothing_to_say()
        incoming = Incoming(
            provider="twilio",
            provider_id=form.get("MessageSid", ""),
            phone_number=number,
            body=form.get("Body", ""),
            meaning=twilio.read_opt_out_type(form),
            is_confirmed=bool(form.get("OptOutType")),
        )
        async with self._database.transaction() as tx:
            await receive(tx, call.organization_id, incoming, texting=call.texting)
        await wait_until_quiet(self._database, call.organization_id, [hash_number(call.texting.secret, number)])
        return _nothing_to_say()

    async def _note(self, call: "_Call") -> Response:
        receipt = twilio.read_receipt(call.form)
        text_id = ids.TEXT.decode(call.subject)
        if receipt is None or text_id is None:
            return Response(status_code=204)
        state, code = receipt
        is_stop = state is State.FAILED and twilio.is_stop_code(code)
        async with self._database.transaction() as tx:
            await note_receipt(
                tx,
                call.organization_id,
                text_id,
                state,
                provider_id=call.form.get("MessageSid"),
                attempt=call.attempt,
                code=code,
                is_stop=is_stop,
                texting=call.texting,
            )
        return Response(status_code=204)


class _Call:
    """A call that fits its address and its signature."""

    def __init__(
        self, organization_id: UUID, texting: Texting, form: Mapping[str, str], subject: str, attempt: str | None
    ) -> None:
        self.organization_id = organization_id
        self.texting = texting
        self.form = form
        self.subject = subject
        self.attempt = attempt


async def _read_form(request: Request) -> dict[str, str] | None:
    """The fields; None if it is no form of a bearable size."""
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


def _nothing_to_say() -> Response:
    return Response(_NOTHING_TO_SAY, media_type="text/xml")


def _not_found() -> Response:
    return PlainTextResponse("There is nothing here.\n", 404)
