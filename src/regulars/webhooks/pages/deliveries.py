"""The pages about webhook deliveries: the list, one delivery with its request and responses, and replays."""

import json
from datetime import timedelta
from typing import Any, Final

from starlette.responses import Response

from regulars.accounts.audit.log import record_act
from regulars.accounts.list_pages import ListPages, OpenedList
from regulars.kit.clock import format_timestamp
from regulars.kit.db import Tx
from regulars.kit.ids import WEBHOOK, WEBHOOK_DELIVERY, WEBHOOK_MESSAGE
from regulars.kit.refusals import NotPossible
from regulars.kit.vault import AnyVault, VaultError
from regulars.web import mask
from regulars.web.access import Action
from regulars.web.form import FormRefused, FormState, format_time_field
from regulars.web.listing import Filter, read_view
from regulars.web.render import redirect, render_form
from regulars.web.route import Form, Harm, Page
from regulars.web.visit import Visit
from regulars.webhooks import manage, model, replay
from regulars.webhooks.delivery.schedule import RETRIES
from regulars.webhooks.delivery.send import USER_AGENT
from regulars.webhooks.delivery_columns import DELIVERY_COLUMNS
from regulars.webhooks.find import FAILED_COUNTED_MAX, count_failed, find_details
from regulars.webhooks.pages.webhook_view import DELIVERIES, PATH, WebhookView, find_endpoint_in_path
from regulars.webhooks.queries.lists import list_deliveries
from regulars.webhooks.signature import sign

STATES: Final = (("pending", "Waiting"), ("delivered", "Delivered"), ("failed", "Failed"), ("cancelled", "Cancelled"))
# Fields that do not identify a person: our own ids, times, and values of a fixed list. All other fields are masked.
# Fields are compared with their full path, because an attribute of a customer may be called `id` too.
UNMASKED_FIELDS: Final = frozenset(
    {
        "type",
        "timestamp",
        "data.id",
        "data.created_at",
        "data.updated_at",
        "data.outcome",
        "data.webhook",
        "data.subscription.id",
        "data.subscription.status",
        "data.subscription.consent_source",
        "data.subscription.created_at",
        "data.subscription.updated_at",
        "data.subscription.profile.id",
        "data.subscription.store.id",
    }
)


class DeliveryPages:
    def __init__(self, vault: AnyVault) -> None:
        self._vault = vault

    def pages(self) -> tuple[Page, ...]:
        may_read, may_replay = Action.READ_WEBHOOKS, Action.REPLAY_WEBHOOKS
        return (
            *_DELIVERIES.pages(DELIVERIES, needs=may_read),
            Page(path=f"{DELIVERIES}/{{delivery}}", needs=may_read, handle=self.show),
            Form(path=f"{DELIVERIES}/{{delivery}}/replay", needs=may_replay, handle=self.replay, harm=Harm.CHANGES),
            Page(path=f"{PATH}/{{endpoint}}/replay", needs=may_replay, handle=self.ask_for_range),
            Form(path=f"{PATH}/{{endpoint}}/replay", needs=may_replay, handle=self.replay_range, harm=Harm.EXPORTS),
        )

    async def show(self, visit: Visit, form: FormState | None = None) -> Response:
        async with visit.database.transaction() as tx:
            details = await _find_details_in_path(tx, visit)
            endpoints = {endpoint.id: endpoint for endpoint in await manage.list_endpoints(tx, visit.organization_id)}
            endpoint = endpoints.get(details.delivery.endpoint_id)
            headers = None
            if endpoint is not None and details.body is not None:
                headers = await self._sign_headers(tx, visit, endpoint, details)
        values: dict[str, Any] = {
            "details": details,
            "delivery": details.delivery,
            "identifier": WEBHOOK_DELIVERY.encode(details.delivery.id),
            "message_id": WEBHOOK_MESSAGE.encode(details.delivery.message_id),
            "endpoint": endpoint,
            "headers": headers,
            "body": format_body(visit, details.body),
            "curl": _format_curl(visit, endpoint, headers, details.body),
            "last": details.attempts[-1] if details.attempts else None,
            # The first attempt, and one after each wait.
            "attempts_max": len(RETRIES.waits_s) + 1,
            "webhook_view": WebhookView(visit),
        }
        return render_form(visit, "webhooks/delivery.html", form or FormState(), **values)

    async def _sign_headers(
        self, tx: Tx, visit: Visit, endpoint: model.Endpoint, details: model.DeliveryDetails
    ) -> list[tuple[str, str]] | None:
        """Return the headers that an attempt would have now: each attempt has its own time and signature."""
        try:
            secrets = await manage.decrypt_secrets(tx, visit.organization_id, endpoint.id, vault=self._vault)
        except VaultError:
            return None
        message_id, timestamp = WEBHOOK_MESSAGE.encode(details.delivery.message_id), int(visit.now.timestamp())
        signature = sign(secrets, message_id=message_id, timestamp=timestamp, body=(details.body or "").encode())
        return [
            ("content-type", "application/json"),
            ("user-agent", USER_AGENT),
            ("webhook-id", message_id),
            ("webhook-timestamp", str(timestamp)),
            ("webhook-signature", signature),
        ]

    async def replay(self, visit: Visit) -> Response:
        with FormState(again=self.show).refusing("replay", NotPossible):
            async with visit.database.transaction() as tx:
                details = await _find_details_in_path(tx, visit)
                new_id = await replay.replay_delivery(tx, visit.organization_id, details.delivery.id)
                subject = WEBHOOK_DELIVERY.encode(details.delivery.id)
                after = {"delivery": WEBHOOK_DELIVERY.encode(new_id)}
                await record_act(tx, visit, "webhook.replay", subject, after=after)
        return redirect(
            visit, WebhookView(visit).delivery_url(new_id), done="It is being sent again, with the same webhook-id."
        )

    async def ask_for_range(self, visit: Visit, form: FormState | None = None) -> Response:
        async with visit.database.transaction() as tx:
            status = await find_endpoint_in_path(tx, visit)
            failed = await count_failed(tx, visit.organization_id, status.endpoint.id)
        since = status.endpoint.health.failing_since or visit.now - timedelta(days=1)
        fields = {"since": format_time_field(visit.format.zone, since), "until": "", "failed": "on"}
        values = {
            "endpoint_status": status,
            "endpoint": status.endpoint,
            "failed": failed,
            "failed_max": FAILED_COUNTED_MAX,
            "days": model.RETENTION.days,
            "messages_max": replay.MESSAGES_MAX,
            "webhook_view": WebhookView(visit),
        }
        return render_form(visit, "webhooks/replay.html", form or FormState(fields), **values)

    async def replay_range(self, visit: Visit) -> Response:
        form = FormState(visit.form, again=self.ask_for_range)
        async with visit.database.transaction() as tx:
            status = await find_endpoint_in_path(tx, visit)
        since = form.moment("since", visit.format.zone, required=True)
        until = form.moment("until", visit.format.zone, required=False)
        if since is not None and until is not None and until <= since:
            form.refuse("until", "The end must be after the beginning.")
        if form.is_refused or since is None:
            raise FormRefused(form)
        only_failed = form.is_checked("failed")
        with form.refusing("since", NotPossible):
            async with visit.database.transaction() as tx:
                count = await replay.replay_range(
                    tx, visit.organization_id, status.endpoint.id, since=since, until=until, only_failed=only_failed
                )
                after = {
                    "from": format_timestamp(since),
                    "to": None if until is None else format_timestamp(until),
                    "only_failed": only_failed,
                    "messages": count,
                }
                await record_act(tx, visit, "webhook.replay_range", WEBHOOK.encode(status.endpoint.id), after=after)
        done = f"{visit.format.count(count, 'delivery is', 'deliveries are')} being sent again."
        target = visit.url(DELIVERIES) + f"?endpoint={WEBHOOK.encode(status.endpoint.id)}"
        return redirect(visit, target, done=done)


async def _open_deliveries(tx: Tx, visit: Visit) -> OpenedList[model.Delivery]:
    endpoints = await manage.list_endpoints(tx, visit.organization_id)
    endpoint_choices = tuple((WEBHOOK.encode(row.id), WebhookView.short_url(row.url)) for row in endpoints)
    choices = (
        Filter("endpoint", "Endpoint", endpoint_choices),
        Filter("type", "Event", tuple((name, name) for name in (*model.EVENT_TYPES, model.PING))),
        Filter("state", "State", STATES),
    )
    view = read_view(visit, "deliveries", DELIVERIES, filters=choices)
    endpoint_id = WEBHOOK.decode(view.value("endpoint"))
    filters = model.DeliveryFilter(endpoint_id, view.value("state") or None, view.value("type") or None)
    values = {
        "searched_max": model.ROWS_SCANNED_MAX,
        "by_id": {endpoint.id: endpoint for endpoint in endpoints},
        "chosen": view.value("endpoint"),
        "webhook_view": WebhookView(visit),
    }
    source = view.by_key(lambda tx, page: list_deliveries(tx, visit.organization_id, filters, page))
    return OpenedList(view, source, values=values)


_DELIVERIES: Final = ListPages(
    "webhooks/deliveries.html", DELIVERY_COLUMNS, _open_deliveries, act="deliveries.export", file_name="deliveries.csv"
)


async def _find_details_in_path(tx: Tx, visit: Visit) -> model.DeliveryDetails:
    return await find_details(tx, visit.organization_id, WEBHOOK_DELIVERY.decode(visit.references[0]))


def format_body(visit: Visit, body: str | None) -> str | None:
    """Return the body, indented; a user who may not see personal data sees only field names and the values of
    `UNMASKED_FIELDS`."""
    if body is None:
        return None
    document = json.loads(body)
    return json.dumps(document if visit.sees_personal else mask_personal(document), indent=2, ensure_ascii=False)


def mask_personal(value: Any, *path: str) -> Any:
    """Return the value at this path of a body with personal data hidden."""
    if isinstance(value, dict):
        return {name: mask_personal(member, *path, name) for name, member in value.items()}
    # A field name may itself contain a dot; such a field is always masked.
    is_unmasked = not any("." in name for name in path) and ".".join(path) in UNMASKED_FIELDS
    return value if value is None or is_unmasked else mask.HIDDEN


def _format_curl(visit: Visit, endpoint: model.Endpoint | None, headers: Any, body: str | None) -> str | None:
    """Return the request as a curl command, unless the user may not see personal data."""
    if endpoint is None or headers is None or body is None or not visit.sees_personal:
        return None
    quoted = body.replace("'", "'\\''")
    lines = [f"curl -i {endpoint.url}", *(f"  -H '{name}: {value}'" for name, value in headers)]
    return " \\\n".join([*lines, f"  --data-raw '{quoted}'"])
