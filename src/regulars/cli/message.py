"""`regulars message`: what was sent. Commands that send are in `sending`."""

from typing import Annotated, Any, Final

import typer

from regulars.cli.frame import AsJson, CommandContext, OfOrganization, run
from regulars.cli.lazy import LazyCommand, lazy_group
from regulars.cli.output import print_rows
from regulars.cli.texting import load, read_number
from regulars.kit import ids
from regulars.messaging.find import list_texts
from regulars.messaging.model import State, TextRow

LIST_MAX: Final = 1_000
COLUMNS: Final = (
    "id",
    ("TO", "phone_number"),
    "state",
    "reason",
    "parts",
    ("ASKED FOR (UTC)", "created_at"),
    ("TEXT", "body"),
)

COMMANDS: Final = {
    "send": LazyCommand("sending:send", "Send a text to a number; consent, hours and caps decide as for every other."),
    "resend": LazyCommand(
        "sending:resend", "Send a text again whose fate is unknown, or that failed; the customer may get it twice."
    ),
    "receive": LazyCommand("sending:receive", "Take in a reply as if the provider had delivered it; STOP withdraws."),
}

app = typer.Typer(no_args_is_help=True, cls=lazy_group(COMMANDS))


@app.command("list")
def list_all(
    organization: OfOrganization,
    number: Annotated[str | None, typer.Option(help="Only those to this number.")] = None,
    state: Annotated[State | None, typer.Option(help="Only those in this state.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=LIST_MAX, help="How many at most, the newest first.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List texts with their state, and why they were skipped."""
    wanted = None if number is None else read_number(number)

    async def act(it: CommandContext) -> list[dict[str, Any]]:
        secret = (await load(it)).secret
        found = await list_texts(
            it.tx, it.organization_id, secret=secret, phone_number=wanted, state=state, limit=limit
        )
        return [_as_data(text) for text in found]

    print_rows(run(organization, act), COLUMNS, as_json=as_json)


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
        "created_at": text.created_at,
        "sent_at": text.claimed_at,
        "due_at": text.due_at,
    }
