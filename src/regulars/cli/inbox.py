"""`regulars inbox`: list, decide and answer the SMS replies that no keyword rule could process."""

import getpass
from enum import StrEnum
from typing import Annotated, Any, Final

import typer

from regulars.cli.output import err, pick, print_rows
from regulars.cli.runner import AsJson, CommandContext, OfOrganization, bind, change, read_id, run
from regulars.cli.sms_settings import load_sms_settings
from regulars.inbox import decide as replies
from regulars.inbox.find import list_replies
from regulars.kit import ids
from regulars.texts.in_flight import wait_for_texts_in_flight
from regulars.texts.model import ReplyRow

app = typer.Typer(no_args_is_help=True)

LIST_MAX: Final = 1_000
COLUMNS: Final = (
    *("id", ("FROM", "phone_number"), ("READ AS", "meaning"), "decided", ("DECIDE BY (UTC)", "decide_by")),
    *("received_at", ("TEXT", "body")),
)

TheReply = Annotated[str, typer.Argument(metavar="ID", help="The id that `inbox list` shows.", show_default=False)]


class ReplyVerdict(StrEnum):
    STOP = "stop"
    NOT_STOP = "not-stop"


@app.command("list")
def list_all(
    organization: OfOrganization,
    with_decided: Annotated[bool, typer.Option("--all", help="Include replies that are decided.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=LIST_MAX, help="Maximum number, newest first.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List replies. While a possible opt-out is undecided, its number gets no texts."""
    rows = run(organization, bind(list_replies, undecided_only=not with_decided, limit=limit))
    print_rows([_as_data(reply) for reply in rows], COLUMNS, as_json=as_json)


@app.command()
def decide(
    organization: OfOrganization,
    reply_id: TheReply,
    verdict: Annotated[ReplyVerdict, typer.Argument(help="Whether the customer opts out.", show_default=False)],
) -> None:
    """Decide what a reply means: `stop` withdraws consent, `not-stop` allows texts to the number again."""
    identifier = read_id(ids.REPLY, reply_id)
    is_stop = verdict is ReplyVerdict.STOP

    async def decide_reply(context: CommandContext) -> None:
        texting, by = await load_sms_settings(context), getpass.getuser()
        await replies.decide(
            context.tx, context.organization_id, identifier, is_stop=is_stop, decided_by=by, texting=texting
        )

    act = "reply.withdraw" if is_stop else "reply.not_stop"
    change(organization, decide_reply, act, reply_id, after_commit=wait_for_texts_in_flight)
    err.print("Consent withdrawn." if is_stop else "Not a withdrawal.", markup=False)


@app.command()
def answer(
    organization: OfOrganization,
    reply_id: TheReply,
    text: Annotated[str, typer.Option(help="Text of the answer.")],
) -> None:
    """Answer a reply, if consent, sending hours and limits allow it."""
    identifier = read_id(ids.REPLY, reply_id)

    async def answer_reply(context: CommandContext) -> None:
        texting = await load_sms_settings(context)
        await replies.answer(
            context.tx,
            context.organization_id,
            identifier,
            once=ids.new_uuid(),
            text=text,
            author_id=None,
            texting=texting,
        )

    change(organization, answer_reply, "reply.answer", reply_id)
    err.print("Queued; `regulars message list` shows its delivery.", style="dim")


def _as_data(reply: ReplyRow) -> dict[str, Any]:
    return {
        "id": ids.REPLY.encode(reply.id),
        "phone_number": reply.phone_number,
        "profile_id": None if reply.profile_id is None else ids.PROFILE.encode(reply.profile_id),
        **pick(reply, "body", "meaning", "decided", "decided_by"),
        "decide_by": reply.due_at,
        "received_at": reply.received_at,
    }
