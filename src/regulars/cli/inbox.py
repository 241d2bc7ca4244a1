"""`regulars inbox`: replies that a person has to read."""

import getpass
from enum import StrEnum
from typing import Annotated, Any
from uuid import UUID

import typer

from regulars.accounts.audit.log import OPERATOR, record
from regulars.cli import texting as desk
from regulars.cli.output import err, print_json, print_table, shown_time
from regulars.cli.transact import AsJson, OfOrganization, read_id
from regulars.kit import ids
from regulars.kit.clock import format_timestamp
from regulars.kit.db import Tx
from regulars.messaging.inbox import decide as use_case
from regulars.messaging.inbox.find import list_replies
from regulars.messaging.inbox.model import ReplyRow
from regulars.messaging.settings.store import Texting

app = typer.Typer(no_args_is_help=True, help="Replies that wait for a person.")

LIST_MAX = 1_000

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

    async def act(tx: Tx, organization_id: UUID, _texting: Texting) -> list[ReplyRow]:
        return list(await list_replies(tx, organization_id, undecided_only=not everything, limit=limit))

    replies = desk.run(organization, act)
    if as_json:
        print_json([_as_data(reply) for reply in replies])
        return
    print_table(
        ["ID", "FROM", "READ AS", "DECIDED", "DECIDE BY (UTC)", "RECEIVED (UTC)", "TEXT"],
        [
            [
                ids.REPLY.encode(reply.id),
                reply.phone_number,
                reply.meaning,
                reply.decided or "",
                shown_time(reply.due_at),
                shown_time(reply.received_at),
                reply.body,
            ]
            for reply in replies
        ],
    )


@app.command()
def decide(
    organization: OfOrganization,
    reply_id: TheReply,
    verdict: Annotated[Verdict, typer.Argument(help="Whether the person asks to stop.", show_default=False)],
) -> None:
    """Decide what a reply means: `stop` withdraws, `not-stop` lets the number be texted again."""
    identifier = read_id(ids.REPLY, reply_id)

    async def act(tx: Tx, organization_id: UUID, texting: Texting) -> None:
        await use_case.decide(
            tx,
            organization_id,
            identifier,
            is_stop=verdict is Verdict.STOP,
            decided_by=getpass.getuser(),
            texting=texting,
        )
        act = "reply.withdraw" if verdict is Verdict.STOP else "reply.not_stop"
        await record(tx, organization_id, OPERATOR, act, reply_id)

    desk.run_quietly(organization, act)
    err.print("Withdrawn." if verdict is Verdict.STOP else "Not a withdrawal.", markup=False)


@app.command()
def answer(
    organization: OfOrganization,
    reply_id: TheReply,
    text: Annotated[str, typer.Option(help="What to write back.")],
) -> None:
    """Write back; the answer goes through the gate like every text."""
    identifier = read_id(ids.REPLY, reply_id)

    async def act(tx: Tx, organization_id: UUID, texting: Texting) -> None:
        await use_case.answer(
            tx, organization_id, identifier, words=text, answered_by=getpass.getuser(), texting=texting
        )
        await record(tx, organization_id, OPERATOR, "reply.answer", reply_id)

    desk.run(organization, act)
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
        "decide_by": None if reply.due_at is None else format_timestamp(reply.due_at),
        "received_at": format_timestamp(reply.received_at),
    }
