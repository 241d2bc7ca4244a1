"""Handles the forms that create, copy, activate, pause and end a journey."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final, cast

import msgspec
from starlette.responses import Response

from regulars.accounts.audit.log import record_act
from regulars.journeys import labels
from regulars.journeys.backtest.requests import find_backtest
from regulars.journeys.journey_templates import JOURNEY_TEMPLATES, find_template
from regulars.journeys.manage import LONG_PAUSE, Journey, WaitingRuns, activate, archive, create_journey, pause
from regulars.journeys.model import JourneyRow
from regulars.journeys.pages.common import describe_entry, find_journey, journey_url, render_journey
from regulars.journeys.pages.flow import build_cards, step_labels
from regulars.journeys.program import references_of
from regulars.journeys.stats import load_total_stats
from regulars.kit.db import Tx
from regulars.kit.etag import etag_of
from regulars.kit.ids import JOURNEY
from regulars.texts.labels import describe_hours
from regulars.texts.settings.store import load_texting
from regulars.web.errors import Conflict
from regulars.web.form import FormState
from regulars.web.render import redirect, render_form
from regulars.web.visit import Visit

# What happens to waiting runs after a long pause: value, label and help.
WAITING: Final = (
    ("continue", "They continue", "from their current step; steps that became due during the pause happen now"),
    ("end", "They leave", "they get no more texts from this journey; new customers enter"),
)
# What lets a customer enter, in singular and plural.
EVENTS: Final = {
    "purchase": ("purchase", "Purchases"),
    "return": ("return", "Returns"),
    "opt_in": ("opt-in", "Opt-ins"),
}
NAME_CHARACTERS_MAX: Final = 120


async def new(visit: Visit, form: FormState | None = None) -> Response:
    describe_step, triggers = labels.describe_step, labels.TRIGGERS
    values = {"templates": JOURNEY_TEMPLATES, "describe_step": describe_step, "triggers": triggers}
    return render_form(visit, "journeys/new.html", form or FormState(), **values)


async def create(visit: Visit) -> Response:
    """Create a journey from a template, or a journey without steps."""
    definition = find_template(visit.form.get("start", ""))
    if definition is None:
        raise FormState(visit.form, again=new).refusal("start", "Choose a template.")
    async with visit.database.transaction() as tx:
        created = await create_journey(
            tx, visit.organization_id, definition, created_by=visit.user.email, is_saved=False
        )
        subject, after = JOURNEY.encode(created.row.id), {"name": definition.name, "start": visit.form["start"]}
        await record_act(tx, visit, "journey.create", subject, after=after)
    done = "Draft created. No customer enters until you activate it."
    edit = journey_url(visit, created.row, "edit")
    return redirect(visit, edit if definition.steps else f"{edit}?entry=1", done=done)


async def duplicate(visit: Visit) -> Response:
    async with visit.database.transaction() as tx:
        journey = await find_journey(tx, visit)
        if journey.damage:
            raise Conflict("A part of this journey cannot be read. Repair it before you copy it.")
        suffix = " (copy)"
        name = f"{journey.definition.name[: NAME_CHARACTERS_MAX - len(suffix)]}{suffix}"
        copied = msgspec.structs.replace(journey.definition, name=name)
        created = await create_journey(tx, visit.organization_id, copied, created_by=visit.user.email, is_saved=False)
        after = {"name": name, "copy_of": JOURNEY.encode(journey.row.id)}
        await record_act(tx, visit, "journey.create", JOURNEY.encode(created.row.id), after=after)
    return redirect(visit, journey_url(visit, created.row), done="Draft copy created.")


async def confirm_activate(visit: Visit, form: FormState | None = None) -> Response:
    async with visit.database.reading() as tx:
        journey = await find_journey(tx, visit)
        return await _render_activation(tx, visit, journey, form or FormState({"waiting": "continue"}))


async def submit_activate(visit: Visit) -> Response:
    form = FormState(visit.form, again=confirm_activate)
    async with visit.database.transaction() as tx:
        journey = await find_journey(tx, visit)
        waiting = form.choice("waiting", ("continue", "end")) if _was_pause_long(visit, journey) else None
        form.check()
        activated = await activate(
            tx,
            visit.organization_id,
            journey.row.id,
            waiting=cast("WaitingRuns | None", waiting),
            by=visit.user.email,
            etag=visit.form.get("was"),
        )
        await _record_state(visit, tx, "journey.activate", before=journey.row, after=activated.row)
    done = f"{journey.row.name} is live. Customers enter from now on."
    return redirect(visit, journey_url(visit, journey.row), done=done)


async def submit_pause(visit: Visit) -> Response:
    return await _stop(visit, pause, "journey.pause", "is paused")


async def submit_end(visit: Visit) -> Response:
    return await _stop(visit, archive, "journey.end", "has ended for all customers")


async def _stop(visit: Visit, use_case: Callable[..., Awaitable[JourneyRow]], act: str, outcome: str) -> Response:
    """Call `pause` or `archive`, and record the change as `act` in the audit log."""
    async with visit.database.transaction() as tx:
        journey = await find_journey(tx, visit)
        stopped = await use_case(tx, visit.organization_id, journey.row.id)
        await _record_state(visit, tx, act, before=journey.row, after=stopped)
    return redirect(visit, journey_url(visit, journey.row), done=f"{journey.row.name} {outcome}.")


async def confirm(template: str, visit: Visit) -> Response:
    """Show the page on which a user confirms to pause or to end the journey."""
    async with visit.database.reading() as tx:
        journey = await find_journey(tx, visit)
        sums = await load_total_stats(tx, visit.organization_id, [journey.row.id])
    stats = sums[journey.row.id]
    return render_journey(visit, template, journey.row, journey=journey, stats=stats, form=FormState())


async def _render_activation(tx: Tx, visit: Visit, journey: Journey, form: FormState) -> Response:
    """Show what activation means: which customers enter, how many in a backtest, the steps and sending hours."""
    organization_id, definition = visit.organization_id, journey.definition
    names = await labels.find_reference_names(tx, organization_id, references_of(definition))
    texting = await load_texting(tx, organization_id)
    backtest = await find_backtest(tx, organization_id, journey.row.id)
    has_report = backtest is not None and backtest.version == journey.row.version and backtest.report is not None
    country = visit.organization.default_country
    cards = build_cards(definition, journey.faults, names=names)
    return render_journey(
        visit,
        "journeys/activate.html",
        journey.row,
        status=400 if form.is_refused else 200,
        journey=journey,
        shown_etag=etag_of(definition),
        form=form,
        is_long=_was_pause_long(visit, journey),
        waiting=WAITING,
        event=EVENTS[definition.trigger][0],
        events=EVENTS[definition.trigger][1],
        **describe_entry(definition, names, journey.faults),
        cards=cards,
        labels=step_labels(cards),
        backtest=backtest if has_report else None,
        texting=texting,
        hours=None if texting is None or country is None else describe_hours(texting.settings.rule_of(country)),
        country=country,
    )


def _was_pause_long(visit: Visit, journey: Journey) -> bool:
    """Whether the pause was so long that the user must choose what happens to waiting customers. One minute less
    than the limit, because `activate` checks a little later."""
    since = journey.row.paused_at
    return since is not None and visit.now - since > LONG_PAUSE - timedelta(minutes=1)


async def _record_state(visit: Visit, tx: Tx, act: str, *, before: JourneyRow, after: JourneyRow) -> None:
    await record_act(
        tx,
        visit,
        act,
        JOURNEY.encode(after.id),
        before={"state": before.state},
        after={"state": after.state, "version": after.version},
    )
