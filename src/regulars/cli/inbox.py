"""`regulars inbox`: replies that a person has to read."""

import getpass
from enum import StrEnum
from typing import Annotated, Any, Final

import typer

from regulars.cli.frame import AsJson, CommandContext, OfOrganization, read_id, run
from regulars.cli.output import err, print_rows
from regulars.cli.texting import load
from regulars.kit import ids
from regulars.messaging.find import list_replies
from regulars.messaging.in_flight import wait_for_texts_in_flight
from regulars.messaging.inbox import decide as use_case
from regulars.messaging.model import ReplyRow

app = typer.Typer(no_args_is_help=True)

LIST_MAX: Final = 1_000
COLUMNS: Final = (
    *("id", ("FROM", "phone_number"), ("READ AS", "meaning"), "decided", ("DECIDE BY (UTC)", "decide_by")),
    *("received_at", ("TEXT", "body")),
)

TheReply = Annotated[str, typer.Argument(metavar="ID", help="The id that `inbox list` shows.", show_default=False)]


class Verdict(StrEnum):
    STOP = "stop"
    NOT_STOP = "not-stop"


@app.command("list")
def list_all(
    organization: OfOrganization,
    everything: Annotated[bool, typer.Option("--all", help="Also those that are decided.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=LIST_MAX, help="How many at most, the newest first.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List replies; one that may ask to stop keeps its number from being texted until it is decided."""
    replies = run(
        organization,
        lambda it: list_replies(it.tx, it.organization_id, undecided_only=not everything, limit=limit),
    )
    print_rows([_as_data(reply) for reply in replies], COLUMNS, as_json=as_json)


@app.command()
def decide(
    organization: OfOrganization,
    reply_id: TheReply,
    verdict: Annotated[Verdict, typer.Argument(help="Whether the person asks to stop.", show_default=False)],
) -> None:
    """Decide what a reply means: `stop` withdraws, `not-stop` lets the number be texted again."""
    identifier = read_id(ids.REPLY, reply_id)

    is_stop = verdict is Verdict.STOP

    async def act(it: CommandContext) -> None:
        texting, by = await load(it), getpass.getuser()
        await use_case.decide(it.tx, it.organization_id, identifier, is_stop=is_stop, decided_by=by, texting=texting)
        await it.record("reply.withdraw" if is_stop else "reply.not_stop", reply_id)

    run(organization, act, afterwards=wait_for_texts_in_flight)
    err.print("Withdrawn." if is_stop else "Not a withdrawal.", markup=False)


@app.command()
def answer(
    organization: OfOrganization,
    reply_id: TheReply,
    text: Annotated[str, typer.Option(help="What to write back.")],
) -> None:
    """Write back; the answer goes through the gate like every text."""
    identifier = read_id(ids.REPLY, reply_id)

    async def act(it: CommandContext) -> None:
        texting, by = await load(it), getpass.getuser()
        await use_case.answer(it.tx, it.organization_id, identifier, words=text, answered_by=by, texting=texting)
        await it.record("reply.answer", reply_id)

    run(organization, act)
    err.print("Queued; `regulars message list` shows what becomes of it.", style="dim")


def _as_data(reply: ReplyRow) -> dict[str, Any]:
    return {
        "id": ids.REPLY.encode(reply.id),
        "phone_number": reply.phone_number,
        "profile_id": None if reply.profile_id is None else ids.PROFILE.encode(reply.profile_id),
        "body": reply.body,
        "meaning": reply.meaning,
        "decided": reply.decided,
        "decided_by": reply.decided_by,
        "decide_by": reply.due_at,
        "received_at": reply.received_at,
    }
