"""`regulars message send`, `resend` and `receive`: send one SMS, or process a reply as if the provider had sent it."""

from typing import Annotated

import typer

from regulars.cli.output import CommandError, ExitCode, err, out, print_outcome
from regulars.cli.runner import AsJson, CommandContext, OfOrganization, bind, change, read_id, run
from regulars.cli.sms_settings import load_sms_settings, read_phone_number
from regulars.inbox.receive import IncomingMessage, ReceivedReply, receive_reply
from regulars.kit import ids
from regulars.links.origin_kind import OriginKind
from regulars.texts.in_flight import wait_for_texts_in_flight
from regulars.texts.request import PlacedOrder, TextOrder, request_texts
from regulars.texts.request import resend as resend_text
from regulars.texts.template import MissingValue, TemplateError, render_plain


def send(
    organization: OfOrganization,
    number: Annotated[str, typer.Option(help="Number to text, in international format.")],
    text: Annotated[str, typer.Option(help="Text to send; brand and opt-out are added.")],
) -> None:
    to = read_phone_number(number)

    async def work(context: CommandContext) -> PlacedOrder:
        order = TextOrder(
            origin_kind=OriginKind.PERSON,
            origin_id=ids.new_uuid(),
            step="command",
            rendered=_read_body(text),
            phone_number=to,
        )
        [placed_order] = await request_texts(
            context.tx, context.organization_id, [order], texting=await load_sms_settings(context)
        )
        await context.record("text.send", ids.TEXT.encode(placed_order.id))
        return placed_order

    placed_order = run(organization, work)
    out.print(ids.TEXT.encode(placed_order.id), markup=False)
    err.print("Queued; `regulars message list` shows its delivery.", style="dim")


def _read_body(text: str) -> str:
    """Return the body of the text. Call it when the database is open: that sets the address for links."""
    try:
        body = render_plain(text)
    except TemplateError as error:
        raise CommandError(str(error), code=ExitCode.USAGE) from error
    if isinstance(body, MissingValue):
        raise CommandError(f"The text uses the variable {body.field}, but this command has no customer for it.")
    return body


def resend(
    organization: OfOrganization,
    text_id: Annotated[str, typer.Argument(metavar="ID", help="The id that `message list` shows.", show_default=False)],
) -> None:
    identifier = read_id(ids.TEXT, text_id)
    change(organization, bind(resend_text, identifier), "text.resend", text_id)
    err.print(f"Queued {text_id} again.", markup=False)


def receive(
    organization: OfOrganization,
    number: Annotated[str, typer.Option("--from", help="Number of the sender, in international format.")],
    text: Annotated[str, typer.Option(help="Text of the reply.")],
    as_json: AsJson = False,
) -> None:
    sender = read_phone_number(number)

    async def work(context: CommandContext) -> ReceivedReply:
        incoming = IncomingMessage(provider="command", provider_id=str(ids.new_uuid()), phone_number=sender, body=text)
        received = await receive_reply(
            context.tx, context.organization_id, incoming, texting=await load_sms_settings(context)
        )
        await context.record("reply.receive", ids.REPLY.encode(received.id))
        return received

    received = run(organization, work, after_commit=wait_for_texts_in_flight)
    meaning, decided = received.meaning.value, received.decision
    data = {"id": ids.REPLY.encode(received.id), "meaning": meaning, "decided": decided}
    waits = "it waits for a person (`regulars inbox list`)"
    print_outcome(data, f"Read as {meaning}: {decided or waits}.", as_json=as_json)
