"""`regulars webhook`: manage webhook endpoints, list their deliveries and send deliveries again."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Final, TypeVar, get_args
from uuid import UUID

import typer

from regulars.cli.output import CommandError, ExitCode, out, pick, print_json, print_outcome, print_result, print_rows
from regulars.cli.runner import AsJson, CommandContext, OfOrganization, bind, change, read_id, run
from regulars.kit import settings
from regulars.kit.clock import format_timestamp, parse_timestamp
from regulars.kit.db import Tx
from regulars.kit.ids import WEBHOOK, WEBHOOK_DELIVERY, IdKind
from regulars.kit.ssrf import AddressPolicy
from regulars.webhooks import events, find, manage
from regulars.webhooks import replay as replays
from regulars.webhooks.delivery_columns import DELIVERY_COLUMNS
from regulars.webhooks.model import DEFAULT_EVENT_TYPES, Delivery, DeliveryState, Endpoint

app = typer.Typer(no_args_is_help=True)

ENDPOINT_COLUMNS: Final = ("id", "url", "events", "state", "failures", "last_success_at", "description")
DELIVERY_TABLE: Final = (
    *("id", "event", "state", "attempts", ("ANSWER", "answer_status"), "created_at"),
    *(("LAST ATTEMPT (UTC)", "attempted_at"), "next_attempt_at"),
)
EndpointId = Annotated[str, typer.Argument(metavar="ID", help="Id of the endpoint.", show_default=False)]
Result = TypeVar("Result")


@app.command()
def create(
    url: Annotated[str, typer.Argument(metavar="URL", help="Address that receives the events.", show_default=False)],
    organization: OfOrganization,
    events: Annotated[
        str,
        typer.Option(help="Event types, separated by commas: names, or groups such as profile.*."),
    ] = ",".join(DEFAULT_EVENT_TYPES),
    description: Annotated[str, typer.Option(help="Purpose of the endpoint; shown in lists.")] = "",
    as_json: AsJson = False,
) -> None:
    """Create an endpoint and print its id and its signing secret."""
    types = [name.strip() for name in events.split(",") if name.strip()]
    policy = AddressPolicy(settings.load().webhook_allow)

    async def work(context: CommandContext) -> manage.EndpointWithSecret:
        created = await manage.create_endpoint(
            context.tx,
            context.organization_id,
            url=url,
            description=description,
            event_types=types,
            policy=policy,
            vault=context.vault,
        )
        after = {"url": created.endpoint.url, "event_types": types}
        await context.record("webhook.create", WEBHOOK.encode(created.endpoint.id), after=after)
        return created

    _print_endpoint_with_secret(run(organization, work, needs_vault=True), as_json=as_json)


@app.command("list")
def list_all(organization: OfOrganization, as_json: AsJson = False) -> None:
    """List the endpoints of an organization."""
    endpoints = run(organization, bind(manage.list_endpoints))
    print_rows([_endpoint_as_data(endpoint) for endpoint in endpoints], ENDPOINT_COLUMNS, as_json=as_json)


@app.command()
def show(endpoint_id: EndpointId, organization: OfOrganization, as_json: AsJson = False) -> None:
    """Show an endpoint, and why it is disabled."""
    identifier = read_id(WEBHOOK, endpoint_id)
    endpoint = run(organization, bind(manage.lock_endpoint, identifier))
    _print_endpoint(endpoint, as_json=as_json)


@app.command()
def disable(endpoint_id: EndpointId, organization: OfOrganization, as_json: AsJson = False) -> None:
    """Stop deliveries to an endpoint; new events are not stored for it."""
    _print_endpoint(_change(organization, endpoint_id, manage.disable_endpoint, "webhook.disable"), as_json=as_json)


@app.command()
def enable(endpoint_id: EndpointId, organization: OfOrganization, as_json: AsJson = False) -> None:
    """Send the waiting deliveries of an endpoint, and store new events for it again."""
    _print_endpoint(_change(organization, endpoint_id, manage.enable_endpoint, "webhook.enable"), as_json=as_json)


@app.command()
def delete(endpoint_id: EndpointId, organization: OfOrganization, as_json: AsJson = False) -> None:
    """Delete an endpoint and stop its deliveries."""
    _change(organization, endpoint_id, manage.delete_endpoint, "webhook.delete")
    print_outcome({"id": endpoint_id, "deleted": True}, f"Deleted {endpoint_id}.", as_json=as_json)


@app.command()
def rotate(endpoint_id: EndpointId, organization: OfOrganization, as_json: AsJson = False) -> None:
    """Create a new signing secret and print it; the old one signs too for 24 hours."""
    identifier = read_id(WEBHOOK, endpoint_id)

    async def work(context: CommandContext) -> manage.EndpointWithSecret:
        rotated = await manage.rotate_secret(context.tx, context.organization_id, identifier, vault=context.vault)
        await context.record("webhook.rotate", endpoint_id)
        return rotated

    _print_endpoint_with_secret(run(organization, work, needs_vault=True), as_json=as_json)


@app.command()
def ping(endpoint_id: EndpointId, organization: OfOrganization, as_json: AsJson = False) -> None:
    """Send a test event to an endpoint and print the id of its delivery."""
    _print_delivery_id(_change(organization, endpoint_id, events.ping, "webhook.ping"), as_json=as_json)


@app.command()
def deliveries(
    organization: OfOrganization,
    endpoint: Annotated[str | None, typer.Option(metavar="ID", help="Only deliveries to this endpoint.")] = None,
    state: Annotated[str | None, typer.Option(help="Only pending, delivered, failed or cancelled deliveries.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=find.LIMIT_MAX, help="Maximum number, newest first.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List deliveries, newest first."""
    endpoint_id = None if endpoint is None else read_id(WEBHOOK, endpoint)
    state_filter: DeliveryState | None = next((name for name in get_args(DeliveryState) if name == state), None)
    if state is not None and state_filter is None:
        raise CommandError("--state must be pending, delivered, failed or cancelled.", code=ExitCode.USAGE)

    async def work(context: CommandContext) -> list[Delivery]:
        if endpoint_id is not None:
            # Raises an error if there is no such endpoint.
            await manage.lock_endpoint(context.tx, context.organization_id, endpoint_id)
        return await find.list_newest_deliveries(
            context.tx, context.organization_id, endpoint_id=endpoint_id, state=state_filter, limit=limit
        )

    rows = [DELIVERY_COLUMNS.as_data(each) for each in run(organization, work)]
    print_rows(rows, DELIVERY_TABLE, as_json=as_json)


@app.command()
def replay(
    delivery: Annotated[str | None, typer.Argument(metavar="DELIVERY_ID", help="A delivery to send again.")] = None,
    *,
    organization: OfOrganization,
    endpoint: Annotated[
        str | None, typer.Option(metavar="ID", help="Send the deliveries of this endpoint again.")
    ] = None,
    since: Annotated[str | None, typer.Option("--from", metavar="TIME", help="Start of the time range.")] = None,
    until: Annotated[
        str | None, typer.Option("--to", metavar="TIME", help="End of the time range; default: now.")
    ] = None,
    failed: Annotated[bool, typer.Option("--failed", help="Only failed deliveries.")] = False,
    as_json: AsJson = False,
) -> None:
    """Send one delivery again, or all deliveries of an endpoint in a time range."""
    if delivery is not None and endpoint is None and since is None and until is None and not failed:
        new_id = _change(organization, delivery, replays.replay_delivery, "webhook.replay", kind=WEBHOOK_DELIVERY)
        _print_delivery_id(new_id, as_json=as_json)
        return
    if delivery is not None or endpoint is None or since is None:
        raise CommandError(
            "Name a delivery, or an endpoint with --endpoint and a start with --from.", code=ExitCode.USAGE
        )
    begin, end = _read_time(since), None if until is None else _read_time(until)
    replay_range = partial(replays.replay_range, since=begin, until=end, only_failed=failed)
    count = _change(organization, endpoint, replay_range, "webhook.replay_range")
    print_result({"replayed": count}, f"{count} messages will be sent again.", as_json=as_json)


def _change(
    organization: str,
    identifier: str,
    use_case: Callable[[Tx, UUID, UUID], Awaitable[Result]],
    action: str,
    *,
    kind: IdKind = WEBHOOK,
) -> Result:
    """Run a use case that changes one endpoint or delivery, and record the action in the audit log."""
    row_id = read_id(kind, identifier)
    return change(organization, bind(use_case, row_id), action, identifier)


def _read_time(text: str) -> datetime:
    try:
        return parse_timestamp(text)
    except ValueError:
        raise CommandError(f"'{text}' is not a time such as 2026-03-02T09:30:00Z.", code=ExitCode.USAGE) from None


def _print_endpoint_with_secret(created: manage.EndpointWithSecret, *, as_json: bool) -> None:
    data = {**_endpoint_as_data(created.endpoint), "secret": created.secret}
    print_result(data, f"{data['id']} {created.secret}", as_json=as_json)


def _print_endpoint(endpoint: Endpoint, *, as_json: bool) -> None:
    data = _endpoint_as_data(endpoint)
    if as_json:
        print_json(data)
        return
    for name, value in data.items():
        text = ", ".join(value) if isinstance(value, list) else value
        text = format_timestamp(text) if isinstance(text, datetime) else text
        out.print(f"{name}: {'' if text is None else text}", markup=False)


def _print_delivery_id(delivery_id: UUID, *, as_json: bool) -> None:
    delivery = WEBHOOK_DELIVERY.encode(delivery_id)
    print_result({"delivery": delivery}, delivery, as_json=as_json)


def _endpoint_as_data(endpoint: Endpoint) -> dict[str, Any]:
    return {
        "id": WEBHOOK.encode(endpoint.id),
        **pick(endpoint, "url", "description"),
        "events": list(endpoint.event_types),
        **pick(endpoint, "state", "disabled_at", "disabled_by", "note", "old_secret_until"),
        **pick(endpoint.health, "failures", "failing_since", "last_success_at"),
        "next_probe_at": endpoint.health.probe_at,
        "created_at": endpoint.created_at,
    }
