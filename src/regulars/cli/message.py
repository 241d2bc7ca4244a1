"""`regulars message`: what was sent and received, and sending by hand, always through the gate."""

from typing import Annotated, Any
from uuid import UUID

import typer

from regulars.accounts.audit.log import OPERATOR, record
from regulars.cli import texting as desk
from regulars.cli.output import CommandError, Exit, err, out, print_json, print_table, shown_time
from regulars.cli.transact import AsJson, OfOrganization, read_id
from regulars.kit import ids
from regulars.kit.clock import format_timestamp
from regulars.kit.db import Tx
from regulars.messaging.find import list_texts
from regulars.messaging.inbox.receive import Incoming, Received, receive
from regulars.messaging.model import OriginKind, State, TextRow
from regulars.messaging.request import Ordered, TextOrder, request_texts
from regulars.messaging.request import resend as send_again
from regulars.messaging.settings.store import Texting
from regulars.messaging.template import Missing, TemplateError, parse_template, render

app = typer.Typer(no_args_is_help=True, help="Texts that were sent and received.")

LIST_MAX = 1_000


@app.command("list")
def list_all(
    organization: OfOrganization,
    number: Annotated[str | None, typer.Option(help="Only those to this number.")] = None,
    state: Annotated[State | None, typer.Option(help="Only those in this state.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=LIST_MAX, help="How many at most, the newest first.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List texts with their state, and why they were skipped."""
    wanted = None if number is None else desk.read_number(number)

    async def act(tx: Tx, organization_id: UUID, texting: Texting) -> list[TextRow]:
        found = await list_texts(
            tx, organization_id, secret=texting.secret, phone_number=wanted, state=state, limit=limit
        )
        return list(found)

    texts = desk.run(organization, act)
    if as_json:
        print_json([_as_data(text) for text in texts])
        return
    print_table(
        ["ID", "TO", "STATE", "REASON", "PARTS", "ASKED FOR (UTC)", "TEXT"],
        [
            [
                ids.TEXT.encode(text.id),
                text.phone_number or "",
                text.state,
                text.reason or "",
                str(text.parts),
                shown_time(text.created_at),
                text.body,
            ]
            for text in texts
        ],
    )


@app.command()
def send(
    organization: OfOrganization,
    number: Annotated[str, typer.Option(help="Whom to text, in international format.")],
    text: Annotated[str, typer.Option(help="What to say; the brand and the way to stop are added.")],
) -> None:
    """Send a text to a number; consent, hours and caps decide as for every other."""
    to = desk.read_number(number)
    try:
        words = render(parse_template(text), {})
    except TemplateError as error:
        raise CommandError(str(error), code=Exit.USAGE) from error
    if isinstance(words, Missing):
        raise CommandError(f"The text has a place for {words.field}, and this command knows no customer.")

    async def act(tx: Tx, organization_id: UUID, texting: Texting) -> Ordered:
        order = TextOrder(
            origin_kind=OriginKind.PERSON, origin_id=ids.new_uuid(), step="command", words=words, phone_number=to
        )
        [ordered] = await request_texts(tx, organization_id, [order], texting=texting)
        await record(tx, organization_id, OPERATOR, "text.send", ids.TEXT.encode(ordered.id))
        return ordered

    ordered = desk.run(organization, act)
    out.print(ids.TEXT.encode(ordered.id), markup=False)
    err.print("Queued; `regulars message list` shows what becomes of it.", style="dim")


@app.command()
def resend(
    organization: OfOrganization,
    text_id: Annotated[str, typer.Argument(metavar="ID", help="The id that `message list` shows.", show_default=False)],
) -> None:
    """Send a text again whose fate is unknown, or that failed; the customer may get it twice."""
    identifier = read_id(ids.TEXT, text_id)

    async def act(tx: Tx, organization_id: UUID, _texting: Texting) -> None:
        await send_again(tx, organization_id, identifier)
        await record(tx, organization_id, OPERATOR, "text.resend", text_id)

    desk.run(organization, act)
    err.print(f"Queued {text_id} again.", markup=False)


@app.command("receive")
def receive_one(
    organization: OfOrganization,
    number: Annotated[str, typer.Option("--from", help="Who writes, in international format.")],
    text: Annotated[str, typer.Option(help="What they write.")],
    as_json: AsJson = False,
) -> None:
    """Take in a reply as if the provider had delivered it; STOP withdraws."""
    sender = desk.read_number(number)

    async def act(tx: Tx, organization_id: UUID, texting: Texting) -> Received:
        incoming = Incoming(provider="command", provider_id=str(ids.new_uuid()), phone_number=sender, body=text)
        received = await receive(tx, organization_id, incoming, texting=texting)
        await record(tx, organization_id, OPERATOR, "reply.receive", ids.REPLY.encode(received.id))
        return received

    received = desk.run_quietly(organization, act)
    if as_json:
        print_json(
            {
                "id": ids.REPLY.encode(received.id),
                "meaning": received.meaning.value,
                "decided": received.decided,
            }
        )
        return
    decided = received.decided or "it waits for a person (`regulars inbox list`)"
    err.print(f"Read as {received.meaning.value}: {decided}.", markup=False)


def _as_data(text: TextRow) -> dict[str, Any]:
    return {
        "id": ids.TEXT.encode(text.id),
        "origin": {"kind": text.origin_kind, "id": str(text.origin_id), "step": text.step},
        "profile_id": None if text.profile_id is None else ids.PROFILE.encode(text.profile_id),
        "phone_number": text.phone_number,
        "body": text.body,
        "parts": text.parts,
        "state": text.state,
        "reason": text.reason,
        "provider": text.provider,
        "provider_id": text.provider_id,
        "created_at": format_timestamp(text.created_at),
        "sent_at": None if text.claimed_at is None else format_timestamp(text.claimed_at),
        "due_at": None if text.due_at is None else format_timestamp(text.due_at),
    }
