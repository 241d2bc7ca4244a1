"""The pages about webhook endpoints: the list with their health, the forms to create and change one, and its page."""

import contextlib
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Any, Final, TypedDict

from starlette.responses import Response

from regulars.accounts.audit.log import list_acts, record_act
from regulars.accounts.model import ActFilter
from regulars.kit.db import Tx
from regulars.kit.etag import EtagMismatch, require_etag
from regulars.kit.ids import WEBHOOK
from regulars.kit.keyset import PageRequest
from regulars.kit.refusals import NotPossible
from regulars.kit.ssrf import AddressPolicy
from regulars.kit.vault import AnyVault, VaultError
from regulars.web.access import Action
from regulars.web.errors import Conflict
from regulars.web.form import FormRefused, FormState
from regulars.web.render import redirect, render, render_form
from regulars.web.route import Form, Harm, Page
from regulars.web.visit import Visit
from regulars.webhooks import events, manage
from regulars.webhooks.event_reference import EVENTS, read_example_receiver
from regulars.webhooks.find import WAITING_COUNTED_MAX, list_statuses
from regulars.webhooks.manage import EndpointRefused
from regulars.webhooks.model import (
    DEFAULT_EVENT_TYPES,
    DESCRIPTION_CHARACTERS_MAX,
    FAMILIES,
    DeliveryFilter,
    Endpoint,
)
from regulars.webhooks.pages.webhook_view import NO_ENDPOINT, PATH, WebhookView, find_endpoint_in_path, part_of
from regulars.webhooks.queries.lists import list_deliveries

LAST_DELIVERIES: Final = 10
URL_CHARACTERS_MAX: Final = 2_048


class EndpointFields(TypedDict):
    url: str
    description: str
    event_types: list[str]


class EndpointPages:
    def __init__(self, vault: AnyVault, policy: AddressPolicy) -> None:
        self._vault = vault
        self._policy = policy

    def pages(self) -> tuple[Page, ...]:
        path = f"{PATH}/{{endpoint}}"
        may_read, may_replay, may_manage = Action.READ_WEBHOOKS, Action.REPLAY_WEBHOOKS, Action.MANAGE_WEBHOOKS
        may_draft = Action.DRAFT_WEBHOOKS
        return (
            Page(path=PATH, needs=may_read, handle=self.show_all),
            Form(path=PATH, needs=may_draft, handle=self.create, harm=Harm.CONNECTS),
            Page(path=f"{PATH}/new", needs=may_draft, handle=self.new),
            Page(path=f"{PATH}/events", needs=may_read, handle=self.events),
            Page(path=path, needs=may_read, handle=self.show),
            Page(path=f"{path}/edit", needs=may_manage, handle=self.edit),
            Form(path=f"{path}/edit", needs=may_manage, handle=self.change, harm=Harm.CONNECTS),
            Form(path=f"{path}/ping", needs=may_replay, handle=self.ping, harm=Harm.CHANGES),
            Page(path=f"{path}/disable", needs=may_manage, handle=partial(self._confirm, "webhooks/disable.html")),
            Form(path=f"{path}/disable", needs=may_manage, handle=self.disable, harm=Harm.STOPS),
            Form(path=f"{path}/enable", needs=may_manage, handle=self.enable, harm=Harm.CONNECTS),
            Form(path=f"{path}/withdraw", needs=may_draft, handle=self.withdraw, harm=Harm.STOPS),
            Page(path=f"{path}/delete", needs=may_manage, handle=partial(self._confirm, "webhooks/delete.html")),
            Form(path=f"{path}/delete", needs=may_manage, handle=self.delete, harm=Harm.STOPS),
            Page(path=f"{path}/rotate", needs=may_manage, handle=partial(self._confirm, "webhooks/rotate.html")),
            Form(path=f"{path}/rotate", needs=may_manage, handle=self.rotate, harm=Harm.CONNECTS),
            Form(path=f"{path}/reveal", needs=may_manage, handle=self.reveal, harm=Harm.CONNECTS),
        )

    async def show_all(self, visit: Visit) -> Response:
        async with visit.database.transaction() as tx:
            statuses = await list_statuses(tx, visit.organization_id)
            last = await list_deliveries(tx, visit.organization_id, DeliveryFilter(), PageRequest(LAST_DELIVERIES))
        return render(
            visit,
            "webhooks/endpoints.html",
            statuses=statuses,
            deliveries=last,
            by_id={status.endpoint.id: status.endpoint for status in statuses},
            webhook_view=WebhookView(visit),
            counted_max=WAITING_COUNTED_MAX,
        )

    async def events(self, visit: Visit) -> Response:
        return render(visit, "webhooks/events.html", samples=EVENTS)

    async def new(self, visit: Visit) -> Response:
        return await _form_page(visit, FormState(), DEFAULT_EVENT_TYPES)

    async def create(self, visit: Visit) -> Response:
        """Create an endpoint. If a developer creates it, it is a draft until an admin approves it, because events
        contain personal data."""
        is_draft = not visit.may(Action.MANAGE_WEBHOOKS)
        form = FormState(visit.form)
        fields = _read_fields(visit, form)
        form.check()
        try:
            async with visit.database.transaction() as tx:
                created = await manage.create_endpoint(
                    tx, visit.organization_id, **fields, policy=self._policy, vault=self._vault, is_draft=is_draft
                )
                act = "webhook.draft" if is_draft else "webhook.create"
                await _record(tx, visit, act, created.endpoint, after=_describe(created.endpoint))
        except (EndpointRefused, VaultError) as error:
            raise _refuse(form, error) from None
        done = "The draft waits for an admin's approval." if is_draft else "The endpoint was created."
        return _show_secrets(visit, created.endpoint, created.secret, done=done)

    async def show(self, visit: Visit, form: FormState | None = None) -> Response:
        async with visit.database.transaction() as tx:
            status = await find_endpoint_in_path(tx, visit)
            filters = DeliveryFilter(endpoint_id=status.endpoint.id)
            last = await list_deliveries(tx, visit.organization_id, filters, PageRequest(LAST_DELIVERIES))
            drafted_by = await _find_drafter(tx, visit, status.endpoint)
        until = status.endpoint.old_secret_until
        values: dict[str, Any] = {
            "endpoint_status": status,
            "endpoint": status.endpoint,
            "drafted_by": drafted_by,
            "identifier": WEBHOOK.encode(status.endpoint.id),
            "deliveries": last,
            "by_id": {status.endpoint.id: status.endpoint},
            "webhook_view": WebhookView(visit),
            "receivers": [("Python", read_example_receiver("python")), ("Node", read_example_receiver("node"))],
            "old_until": until if until is not None and until > visit.now else None,
            "counted_max": WAITING_COUNTED_MAX,
        }
        return render_form(visit, "webhooks/endpoint.html", form or FormState(), **values)

    async def edit(self, visit: Visit) -> Response:
        async with visit.database.transaction() as tx:
            endpoint = (await find_endpoint_in_path(tx, visit)).endpoint
        values = {"url": endpoint.url, "description": endpoint.description}
        return await _form_page(visit, FormState(values), endpoint.event_types, endpoint)

    async def change(self, visit: Visit) -> Response:
        form = FormState(visit.form)
        fields = _read_fields(visit, form)
        async with visit.database.transaction() as tx:
            before = await _lock_endpoint_in_path(tx, visit)
            form.again = partial(_form_page, types=fields["event_types"], endpoint=before)
            try:
                require_etag(part_of(before), visit.form.get("was"))
            except EtagMismatch:
                form.refuse(
                    "url",
                    f"The endpoint was changed after you had opened this page: it sends {', '.join(before.event_types)}"
                    f" to {before.url} now. Save again to replace that.",
                )
            form.check()
            try:
                changed = await manage.change_endpoint(
                    tx, visit.organization_id, before.id, **fields, policy=self._policy
                )
            except EndpointRefused as error:
                raise _refuse(form, error) from None
            await _record(tx, visit, "webhook.change", changed, before=_describe(before), after=_describe(changed))
        return redirect(visit, _url(visit, changed), done="Saved. Waiting deliveries go to this address.")

    async def ping(self, visit: Visit) -> Response:
        async with visit.database.transaction() as tx:
            endpoint = (await find_endpoint_in_path(tx, visit)).endpoint
        with FormState(again=self.show).refusing("ping", NotPossible):
            async with visit.database.transaction() as tx:
                delivery_id = await events.ping(tx, visit.organization_id, endpoint.id)
                await _record(tx, visit, "webhook.ping", endpoint)
        return redirect(visit, WebhookView(visit).delivery_url(delivery_id), done="A test event is on its way.")

    async def disable(self, visit: Visit) -> Response:
        async with visit.database.transaction() as tx:
            endpoint = (await find_endpoint_in_path(tx, visit)).endpoint
            await manage.disable_endpoint(tx, visit.organization_id, endpoint.id)
            await _record(tx, visit, "webhook.disable", endpoint)
        return redirect(visit, _url(visit, endpoint), done="Disabled. Waiting deliveries are sent when you enable it.")

    async def enable(self, visit: Visit) -> Response:
        async with visit.database.transaction() as tx:
            endpoint = await _lock_endpoint_in_path(tx, visit)
            require_etag(part_of(endpoint), visit.form.get("was"))
            await manage.enable_endpoint(tx, visit.organization_id, endpoint.id)
            await _record(tx, visit, "webhook.approve" if endpoint.is_draft else "webhook.enable", endpoint)
        done = "Approved. Events are sent now." if endpoint.is_draft else "Enabled. Waiting deliveries are sent now."
        return redirect(visit, _url(visit, endpoint), done=done)

    async def withdraw(self, visit: Visit) -> Response:
        async with visit.database.transaction() as tx:
            endpoint = (await find_endpoint_in_path(tx, visit)).endpoint
            await manage.withdraw_draft(tx, visit.organization_id, endpoint.id)
            await _record(tx, visit, "webhook.withdraw", endpoint, before=_describe(endpoint))
        return redirect(visit, visit.url(PATH), done="The draft was deleted.")

    async def delete(self, visit: Visit) -> Response:
        form = FormState(visit.form, again=partial(self._confirm, "webhooks/delete.html"))
        async with visit.database.transaction() as tx:
            status = await find_endpoint_in_path(tx, visit)
        if form.value("host").strip() != WebhookView.short_url(status.endpoint.url):
            raise form.refusal("host", "Type the address as shown above, without https://.")
        async with visit.database.transaction() as tx:
            await manage.delete_endpoint(tx, visit.organization_id, status.endpoint.id)
            await _record(tx, visit, "webhook.delete", status.endpoint, before=_describe(status.endpoint))
        return redirect(visit, visit.url(PATH), done="Deleted. Nothing more is sent to it.")

    async def rotate(self, visit: Visit) -> Response:
        async with _conflict_if_unreadable(), visit.database.transaction() as tx:
            endpoint = (await find_endpoint_in_path(tx, visit)).endpoint
            rotated = await manage.rotate_secret(tx, visit.organization_id, endpoint.id, vault=self._vault)
            valid_secrets = await manage.reveal_secrets(tx, visit.organization_id, endpoint.id, vault=self._vault)
            await _record(tx, visit, "webhook.rotate", endpoint)
        secrets = " ".join([rotated.secret, *valid_secrets[1:]])
        return _show_secrets(visit, endpoint, secrets, done="The secret was rotated. Both are valid for 24 hours.")

    async def reveal(self, visit: Visit) -> Response:
        async with _conflict_if_unreadable(), visit.database.transaction() as tx:
            endpoint = (await find_endpoint_in_path(tx, visit)).endpoint
            secrets = await manage.reveal_secrets(tx, visit.organization_id, endpoint.id, vault=self._vault)
            await _record(tx, visit, "webhook.reveal", endpoint)
        return _show_secrets(visit, endpoint, " ".join(secrets))

    async def _confirm(self, template: str, visit: Visit, form: FormState | None = None) -> Response:
        async with visit.database.transaction() as tx:
            status = await find_endpoint_in_path(tx, visit)
        values: dict[str, Any] = {
            "endpoint_status": status,
            "endpoint": status.endpoint,
            "webhook_view": WebhookView(visit),
            "counted_max": WAITING_COUNTED_MAX,
        }
        return render_form(visit, template, form or FormState(), **values)


@contextlib.asynccontextmanager
async def _conflict_if_unreadable() -> AsyncIterator[None]:
    """Report a secret that this server's key cannot decrypt as a conflict, not as an internal error."""
    try:
        yield
    except VaultError as error:
        raise Conflict(str(error)) from None


async def _form_page(visit: Visit, form: FormState, types: Sequence[str], endpoint: Endpoint | None = None) -> Response:
    values: dict[str, Any] = {
        "endpoint": endpoint,
        "families": FAMILIES,
        "chosen": set(types),
        "samples": {sample.type: sample.sentence for sample in EVENTS},
        "webhook_view": WebhookView(visit),
    }
    return render_form(visit, "webhooks/edit.html", form, **values)


def _read_fields(visit: Visit, form: FormState) -> EndpointFields:
    """Read URL, description and event types; events that a selected family such as `profile.*` includes are dropped."""
    url = form.text("url", characters_max=URL_CHARACTERS_MAX)
    description = form.text("description", required=False, characters_max=DESCRIPTION_CHARACTERS_MAX)
    chosen = visit.form_lists.get("events", [])
    covered = {name for family in chosen for name in FAMILIES.get(family, ())}
    types = [name for name in dict.fromkeys(chosen) if name not in covered]
    if not types:
        form.refuse("events", "Choose at least one type of event.")
    form.again = partial(_form_page, types=types)
    return {"url": url, "description": description, "event_types": types}


def _refuse(form: FormState, error: Exception) -> FormRefused:
    return form.refusal("events" if "type of event" in str(error) else "url", error)


def _url(visit: Visit, endpoint: Endpoint) -> str:
    return visit.url(PATH, WEBHOOK.encode(endpoint.id))


def _show_secrets(visit: Visit, endpoint: Endpoint, secrets: str, *, done: str | None = None) -> Response:
    """Redirect to the endpoint's page, which shows the secrets once; the id prevents other pages from showing them."""
    endpoint_and_secrets = f"{WEBHOOK.encode(endpoint.id)} {secrets}"
    return redirect(visit, _url(visit, endpoint), done=done, show_once=endpoint_and_secrets)


async def _lock_endpoint_in_path(tx: Tx, visit: Visit) -> Endpoint:
    """The endpoint, locked until the transaction ends: what the form showed is compared with what is then changed."""
    return await manage.lock_endpoint(tx, visit.organization_id, visit.read_id(WEBHOOK, NO_ENDPOINT))


async def _find_drafter(tx: Tx, visit: Visit, endpoint: Endpoint) -> str | None:
    """Return the email address of the developer who created a draft, for the admin who approves it."""
    if not endpoint.is_draft or not visit.may(Action.READ_AUDIT_LOG):
        return None
    filters = ActFilter(act="webhook.draft", subject=WEBHOOK.encode(endpoint.id))
    acts = await list_acts(tx, visit.organization_id, PageRequest(1), filters)
    return next((act.actor for act in acts), None)


def _describe(endpoint: Endpoint) -> dict[str, Any]:
    return {"url": endpoint.url, "description": endpoint.description, "events": list(endpoint.event_types)}


async def _record(tx: Tx, visit: Visit, act: str, endpoint: Endpoint, **more: Any) -> None:
    await record_act(tx, visit, act, WEBHOOK.encode(endpoint.id), **more)
