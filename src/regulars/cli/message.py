"""`regulars message`: list SMS texts. The commands that send and receive them are in `message_send`."""

from typing import Annotated, Any, Final

import typer

from regulars.cli.lazy_commands import LazyCommand, lazy_group
from regulars.cli.output import pick, print_rows
from regulars.cli.runner import AsJson, CommandContext, OfOrganization, run
from regulars.cli.sms_settings import load_sms_settings, read_phone_number
from regulars.inbox.find import list_texts
from regulars.kit import ids
from regulars.texts.model import TextRow, TextState

LIST_MAX: Final = 1_000
COLUMNS: Final = (
    "id",
    ("TO", "phone_number"),
    "state",
    "reason",
    "parts",
    ("REQUESTED (UTC)", "created_at"),
    ("TEXT", "body"),
)

COMMANDS: Final = {
    "send": LazyCommand("message_send:send", "Send a text to a number, if consent, sending hours and limits allow it."),
    "resend": LazyCommand(
        "message_send:resend",
        "Send a text again that failed or whose delivery is unknown; the customer may get it twice.",
    ),
    "receive": LazyCommand(
        "message_send:receive", "Process a reply as if the provider had delivered it; STOP withdraws consent."
    ),
}

app = typer.Typer(no_args_is_help=True, cls=lazy_group(COMMANDS))


@app.command("list")
def list_all(
    organization: OfOrganization,
    number: Annotated[str | None, typer.Option(help="Only texts to this number.")] = None,
    state: Annotated[TextState | None, typer.Option(help="Only texts in this state.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=LIST_MAX, help="Maximum number, newest first.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List texts with their state, and why they were skipped."""
    phone_number = None if number is None else read_phone_number(number)

    async def work(context: CommandContext) -> list[dict[str, Any]]:
        secret = (await load_sms_settings(context)).secret
        texts = await list_texts(
            context.tx, context.organization_id, secret=secret, phone_number=phone_number, state=state, limit=limit
        )
        return [_as_data(text) for text in texts]

    print_rows(run(organization, work), COLUMNS, as_json=as_json)


def _as_data(text: TextRow) -> dict[str, Any]:
    return {
        "id": ids.TEXT.encode(text.id),
        "origin": {"kind": text.origin_kind, "id": str(text.origin_id), "step": text.step},
        "profile_id": None if text.profile_id is None else ids.PROFILE.encode(text.profile_id),
        **pick(text, "phone_number", "body", "parts", "state", "reason", "provider", "provider_id", "created_at"),
        "sent_at": text.claimed_at,
        "due_at": text.due_at,
    }
