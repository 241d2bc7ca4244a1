"""`regulars webhook`: endpoints, their deliveries, and sending again."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Annotated, Any, TypeVar, get_args
from uuid import UUID

import typer

from regulars.accounts.audit.log import OPERATOR, record
from regulars.cli import database, unlock
from regulars.cli.output import CommandError, Exit, err, out, print_json, print_table, shown_time
from regulars.cli.transact import AsJson, OfOrganization, read_id, transact
from regulars.kit import settings, vault
from regulars.kit.clock import format_timestamp, parse_timestamp
from regulars.kit.db import Tx
from regulars.kit.guard import Guard
from regulars.kit.ids import WEBHOOK, WEBHOOK_DELIVERY, WEBHOOK_MESSAGE
from regulars.webhooks import look, manage, post
from regulars.webhooks import replay as replaying
from regulars.webhooks.errors import WebhookError
from regulars.webhooks.model import DEFAULT, Delivery, DeliveryState, Endpoint

app = typer.Typer(no_args_is_help=True, help="Manage webhook endpoints, and look at and repeat their deliveries.")

EndpointId = Annotated[str, typer.Argument(metavar="ID", help="The id that `webhook list` shows.", show_default=False)]
T = TypeVar("T")


@app.command()
def create(
    url: Annotated[str, typer.Argument(metavar="URL", help="Where events are posted to.", show_default=False)],
    organization: OfOrganization,
    events: Annotated[
        str,
        typer.Option(help="Types of events, separated by commas: names, or families such as profile.*."),
    ] = ",".join(DEFAULT),
    description: Annotated[str, typer.Option(help="What the endpoint is for; shown in lists.")] = "",
    as_json: AsJson = False,
) -> None:
    """Create an endpoint and print its id and the secret that signs what is sent to it."""
    loaded = settings.load()
    types = [name.strip() for name in events.split(",") if name.strip()]
    with database.ready(loaded) as address:
        sealing = vault.of(unlock.unlocked(loaded, address))

        async def work(tx: Tx, owner: UUID) -> manage.Created:
            created = await manage.create_endpoint(
                tx,
                owner,
                url=url,
                description=description,
                event_types=types,
                guard=Guard(loaded.webhook_allow),
                vault=sealing,
            )
            after = {"url": created.endpoint.url, "event_types": types}
            await record(tx, owner, OPERATOR, "webhook.create", WEBHOOK.encode(created.endpoint.id), after=after)
            return created

        created = _do(address, organization, work)
    _show_created(created, as_json=as_json)


@app.command("list")
def list_all(organization: OfOrganization, as_json: AsJson = False) -> None:
    """List the endpoints of an organization."""
    with database.ready(settings.load()) as url:
        endpoints = _do(url, organization, manage.list_endpoints)
    if as_json:
        print_json([_endpoint_data(endpoint) for endpoint in endpoints])
        return
    print_table(
        ["ID", "URL", "EVENTS", "STATE", "FAILURES", "LAST SUCCESS (UTC)", "DESCRIPTION"],
        [
            [
                WEBHOOK.encode(endpoint.id),
                endpoint.url,
                ",".join(endpoint.event_types),
                endpoint.state,
                str(endpoint.health.failures),
                shown_time(endpoint.health.last_success_at),
                endpoint.description,
            ]
            for endpoint in endpoints
        ],
    )


@app.command()
def show(endpoint_id: EndpointId, organization: OfOrganization, as_json: AsJson = False) -> None:
    """Show one endpoint, and why it is disabled if it is."""
    identifier = read_id(WEBHOOK, endpoint_id)
    with database.ready(settings.load()) as url:
        endpoint = _do(url, organization, lambda tx, owner: manage.find_endpoint(tx, owner, identifier))
    _show_endpoint(endpoint, as_json=as_json)


@app.command()
def disable(endpoint_id: EndpointId, organization: OfOrganization, as_json: AsJson = False) -> None:
    """Hold what waits for an endpoint; events from now on are not made for it."""
    identifier = read_id(WEBHOOK, endpoint_id)
    with database.ready(settings.load()) as url:
        act = ("webhook.disable", endpoint_id)
        endpoint = _do(url, organization, lambda tx, owner: manage.disable_endpoint(tx, owner, identifier), act=act)
    _show_endpoint(endpoint, as_json=as_json)


@app.command()
def enable(endpoint_id: EndpointId, organization: OfOrganization, as_json: AsJson = False) -> None:
    """Send what was held, and make events for an endpoint again."""
    identifier = read_id(WEBHOOK, endpoint_id)
    with database.ready(settings.load()) as url:
        act = ("webhook.enable", endpoint_id)
        endpoint = _do(url, organization, lambda tx, owner: manage.enable_endpoint(tx, owner, identifier), act=act)
    _show_endpoint(endpoint, as_json=as_json)


@app.command()
def delete(endpoint_id: EndpointId, organization: OfOrganization, as_json: AsJson = False) -> None:
    """Delete an endpoint; nothing more is sent to it."""
    identifier = read_id(WEBHOOK, endpoint_id)
    with database.ready(settings.load()) as url:
        act = ("webhook.delete", endpoint_id)
        _do(url, organization, lambda tx, owner: manage.delete_endpoint(tx, owner, identifier), act=act)
    if as_json:
        print_json({"id": endpoint_id, "deleted": True})
    else:
        err.print(f"Deleted {endpoint_id}.", markup=False)


@app.command()
def rotate(endpoint_id: EndpointId, organization: OfOrganization, as_json: AsJson = False) -> None:
    """Make a new secret and print it; the one before signs too for 24 hours."""
    identifier = read_id(WEBHOOK, endpoint_id)
    loaded = settings.load()
    with database.ready(loaded) as url:
        sealing = vault.of(unlock.unlocked(loaded, url))
        act = ("webhook.rotate", endpoint_id)
        rotated = _do(
            url, organization, lambda tx, owner: manage.rotate_secret(tx, owner, identifier, vault=sealing), act=act
        )
    _show_created(rotated, as_json=as_json)


@app.command()
def ping(endpoint_id: EndpointId, organization: OfOrganization, as_json: AsJson = False) -> None:
    """Send a test event to an endpoint, and print the id of its delivery."""
    identifier = read_id(WEBHOOK, endpoint_id)
    with database.ready(settings.load()) as url:
        act = ("webhook.ping", endpoint_id)
        delivery_id = _do(url, organization, lambda tx, owner: post.ping(tx, owner, identifier), act=act)
    _show_delivery_id(delivery_id, as_json=as_json)


@app.command()
def deliveries(
    organization: OfOrganization,
    endpoint: Annotated[str | None, typer.Option(metavar="ID", help="Only those to this endpoint.")] = None,
    state: Annotated[str | None, typer.Option(help="Only pending, delivered, failed or cancelled ones.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=look.PAGE_MAX, help="How many, the newest first.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List deliveries, the newest first."""
    endpoint_id = None if endpoint is None else read_id(WEBHOOK, endpoint)
    wanted: DeliveryState | None = next((one for one in get_args(DeliveryState) if one == state), None)
    if state is not None and wanted is None:
        raise CommandError("--state must be pending, delivered, failed or cancelled.", code=Exit.USAGE)

    async def work(tx: Tx, organization_id: UUID) -> list[Delivery]:
        if endpoint_id is not None:
            await manage.find_endpoint(tx, organization_id, endpoint_id)
        return await look.list_deliveries(tx, organization_id, endpoint_id=endpoint_id, state=wanted, limit=limit)

    with database.ready(settings.load()) as url:
        found = _do(url, organization, work)
    if as_json:
        print_json([_delivery_data(delivery) for delivery in found])
        return
    print_table(
        ["ID", "EVENT", "STATE", "ATTEMPTS", "ANSWER", "CREATED (UTC)", "LAST ATTEMPT (UTC)", "NEXT ATTEMPT (UTC)"],
        [
            [
                WEBHOOK_DELIVERY.encode(delivery.id),
                delivery.type,
                delivery.state,
                str(delivery.attempts),
                str(delivery.answer_status or ""),
                shown_time(delivery.created_at),
                shown_time(delivery.attempted_at),
                shown_time(delivery.due_at),
            ]
            for delivery in found
        ],
    )


@app.command()
def replay(
    delivery: Annotated[str | None, typer.Argument(metavar="DELIVERY_ID", help="One to send again.")] = None,
    *,
    organization: OfOrganization,
    endpoint: Annotated[str | None, typer.Option(metavar="ID", help="Send again what went to this endpoint.")] = None,
    since: Annotated[str | None, typer.Option("--from", metavar="TIME", help="From this moment on.")] = None,
    until: Annotated[
        str | None, typer.Option("--to", metavar="TIME", help="Up to this moment; now without it.")
    ] = None,
    failed: Annotated[bool, typer.Option("--failed", help="Only what never arrived.")] = False,
    as_json: AsJson = False,
) -> None:
    """Send one delivery again, or all of an endpoint in a time."""
    if delivery is not None and endpoint is None and since is None and until is None and not failed:
        identifier = read_id(WEBHOOK_DELIVERY, delivery)
        with database.ready(settings.load()) as url:
            act = ("webhook.replay", delivery)
            new = _do(url, organization, lambda tx, owner: replaying.replay_delivery(tx, owner, identifier), act=act)
        _show_delivery_id(new, as_json=as_json)
        return
    if delivery is not None or endpoint is None or since is None:
        raise CommandError("Name one delivery, or an endpoint with --endpoint and a time with --from.", code=Exit.USAGE)
    endpoint_id = read_id(WEBHOOK, endpoint)
    begin, end = _read_time(since), None if until is None else _read_time(until)
    with database.ready(settings.load()) as url:
        count = _do(
            url,
            organization,
            lambda tx, owner: replaying.replay_range(
                tx, owner, endpoint_id, since=begin, until=end, only_failed=failed
            ),
            act=("webhook.replay_range", endpoint),
        )
    if as_json:
        print_json({"replayed": count})
    else:
        out.print(f"{count} messages will be sent again.", markup=False)


def _do(url: str, name: str, work: Callable[[Tx, UUID], Awaitable[T]], *, act: tuple[str, str] | None = None) -> T:
    """`act` is what goes into the audit log, and its subject."""

    async def recorded(tx: Tx, organization_id: UUID) -> T:
        answer = await work(tx, organization_id)
        if act is not None:
            await record(tx, organization_id, OPERATOR, *act)
        return answer

    return transact(url, name, recorded, refusals=(WebhookError,))


def _read_time(text: str) -> datetime:
    try:
        return parse_timestamp(text)
    except ValueError:
        raise CommandError(f"'{text}' is no time such as 2026-03-02T09:30:00Z.", code=Exit.USAGE) from None


def _show_created(created: manage.Created, *, as_json: bool) -> None:
    if as_json:
        print_json({**_endpoint_data(created.endpoint), "secret": created.secret})
        return
    typer.echo(f"{WEBHOOK.encode(created.endpoint.id)} {created.secret}")


def _show_endpoint(endpoint: Endpoint, *, as_json: bool) -> None:
    data = _endpoint_data(endpoint)
    if as_json:
        print_json(data)
        return
    for name, value in data.items():
        shown = ", ".join(value) if isinstance(value, list) else value
        out.print(f"{name}: {'' if shown is None else shown}", markup=False)


def _show_delivery_id(delivery_id: UUID, *, as_json: bool) -> None:
    shown = WEBHOOK_DELIVERY.encode(delivery_id)
    if as_json:
        print_json({"delivery": shown})
    else:
        typer.echo(shown)


def _endpoint_data(endpoint: Endpoint) -> dict[str, Any]:
    health = endpoint.health
    return {
        "id": WEBHOOK.encode(endpoint.id),
        "url": endpoint.url,
        "description": endpoint.description,
        "events": list(endpoint.event_types),
        "state": endpoint.state,
        "disabled_at": _time(endpoint.disabled_at),
        "disabled_by": endpoint.disabled_by,
        "note": endpoint.note,
        "old_secret_until": _time(endpoint.old_secret_until),
        "failures": health.failures,
        "failing_since": _time(health.failing_since),
        "last_success_at": _time(health.last_success_at),
        "next_probe_at": _time(health.probe_at),
        "created_at": _time(endpoint.created_at),
    }


def _delivery_data(delivery: Delivery) -> dict[str, Any]:
    return {
        "id": WEBHOOK_DELIVERY.encode(delivery.id),
        "endpoint": WEBHOOK.encode(delivery.endpoint_id),
        "webhook_id": WEBHOOK_MESSAGE.encode(delivery.message_id),
        "event": delivery.type,
        "state": delivery.state,
        "attempts": delivery.attempts,
        "answer_status": delivery.answer_status,
        "duration_ms": delivery.duration_ms,
        "is_replay": delivery.is_replay,
        "created_at": _time(delivery.created_at),
        "attempted_at": _time(delivery.attempted_at),
        "next_attempt_at": _time(delivery.due_at),
    }


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else format_timestamp(moment)
