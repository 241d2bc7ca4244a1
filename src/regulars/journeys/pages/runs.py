"""The list of runs of a journey, the reasons why a customer entered or not, and the page of a run with its trace."""

from typing import Final, NamedTuple
from uuid import UUID

from starlette.responses import Response

from regulars.accounts.audit.log import record_act
from regulars.journeys.entry_explanation import EntryExplanation, explain
from regulars.journeys.labels import describe_step, find_reference_names
from regulars.journeys.manage import Journey
from regulars.journeys.model import RunRow
from regulars.journeys.pages.common import PATH, find_journey, journey_url, render_journey
from regulars.journeys.pages.flow import build_cards, step_labels
from regulars.journeys.pages.trace import (
    WAITS,
    TraceContext,
    describe_reason,
    describe_trace,
    label_outcome,
    segments_in_trace,
)
from regulars.journeys.program import graph_of, references_of
from regulars.journeys.runs.definition_cache import load_shown_definitions
from regulars.journeys.runs.lifecycle import resume_run
from regulars.journeys.runs.lists import find_run, list_runs
from regulars.journeys.runs.trace import list_trace
from regulars.journeys.snapshot import find_people, find_sales
from regulars.journeys.stats import load_total_stats
from regulars.kit.db import Tx
from regulars.kit.ids import JOURNEY, PROFILE, RUN
from regulars.kit.keyset import PageRows
from regulars.links.origin_kind import OriginKind
from regulars.profiles.search import suggest_profiles
from regulars.sales.listing import find_sale
from regulars.texts.find import list_texts_of_origin
from regulars.web import mask
from regulars.web.errors import PageNotFound
from regulars.web.listing import Filter, ListView, make_page, read_view
from regulars.web.render import redirect
from regulars.web.visit import Visit

RUN_STATES: Final = {"active": "In the journey", "parked": "Needs attention", "ended": "Left"}


class RunLine(NamedTuple):
    """A run in the list, with the ids of the run (`canonical`) and of the customer as pages show them."""

    run: RunRow
    canonical: str
    customer: str
    name: str | None
    # The current step of the run, or its outcome.
    status: str


def filters(visit: Visit, journey: Journey) -> list[Filter]:
    placeholder = "Customer name, number or ID" if visit.sees_personal else "prof_…"
    cards = build_cards(journey.definition, [], names={})
    steps = [(step, label) for step, label in step_labels(cards).items() if step in graph_of(journey.definition).nodes]
    requested = visit.query.get("step", "")
    if requested and requested not in dict(steps):
        steps.append((requested, "A step of another version"))
    return [
        Filter("who", "Search customers", kind="search", placeholder=placeholder),
        Filter("state", "State", choices=tuple(RUN_STATES.items())),
        Filter("step", "Current step", choices=tuple(steps)),
    ]


async def show_runs(visit: Visit) -> Response:
    async with visit.database.reading() as tx:
        journey = await find_journey(tx, visit)
        path = f"{PATH}/{JOURNEY.encode(journey.row.id)}/runs"
        view = read_view(visit, "runs", path, filters=filters(visit, journey))
        people = await suggest_profiles(tx, visit.organization, view.value("who"), sees_personal=visit.sees_personal)
        customer = people[0].id if len(people) == 1 else None
        # False if the user searched for a customer and found none, or several.
        is_known = customer is not None or not view.value("who")
        runs = await _list_runs(tx, visit, journey, view, customer) if is_known else PageRows()
        explanations: list[EntryExplanation] = []
        if customer is not None:
            explanations = await explain(tx, visit.organization_id, journey, customer, secret=visit.organization.secret)
        page = make_page(view, runs)
        lines = await _load_lines(tx, visit, list(page.rows))
        sums = await load_total_stats(tx, visit.organization_id, [journey.row.id])
    return render_journey(
        visit,
        "journeys/runs.html",
        journey.row,
        view=view,
        page=page,
        lines=lines,
        stats=sums[journey.row.id],
        is_known=is_known,
        people=[mask.make_match(visit, it) for it in people] if len(people) > 1 else [],
        explained=explanations,
    )


async def _list_runs(tx: Tx, visit: Visit, journey: Journey, view: ListView, customer: UUID | None) -> PageRows[RunRow]:
    return await list_runs(
        tx,
        visit.organization_id,
        journey.row.id,
        view.request,
        state=view.value("state") or None,
        step=view.value("step") or None,
        profile_id=customer,
    )


async def _load_lines(tx: Tx, visit: Visit, runs: list[RunRow]) -> list[RunLine]:
    people = {it.id: it for it in await find_people(tx, visit.organization_id, {run.profile_id for run in runs})}
    versions = {(run.journey_id, run.version) for run in runs}
    definitions = await load_shown_definitions(tx, visit.organization_id, versions)
    lines = []
    for run in runs:
        person = people.get(run.profile_id)
        node = graph_of(definitions[run.journey_id, run.version]).nodes.get(run.step or "")
        at_step = "" if node is None else f" at “{describe_step(node.step).kind}”"
        reason = describe_reason(visit, run)
        status = f"{WAITS.get(run.waits_for or '', 'Continues')}{at_step}" if run.state == "active" else reason
        lines.append(
            RunLine(
                run,
                RUN.encode(run.id),
                PROFILE.encode(run.profile_id),
                None if person is None else mask.name(visit, person.first_name, person.last_name),
                status if run.state != "ended" else label_outcome(run.outcome),
            )
        )
    return lines


async def show_run(visit: Visit) -> Response:
    async with visit.database.reading() as tx:
        journey = await find_journey(tx, visit)
        run = await _find_run(tx, visit, journey)
        definitions = await load_shown_definitions(tx, visit.organization_id, {(run.journey_id, run.version)})
        rows = await list_trace(tx, visit.organization_id, run.id)
        texts = await list_texts_of_origin(tx, visit.organization_id, OriginKind.JOURNEY, run.id)
        references = references_of(definitions[run.journey_id, run.version])
        references = references._replace(segments=references.segments | segments_in_trace(rows))
        context = TraceContext(texts, await find_reference_names(tx, visit.organization_id, references))
        people = await find_people(tx, visit.organization_id, {run.profile_id})
        sales = await find_sales(tx, visit.organization_id, [] if run.sale_id is None else [run.sale_id])
        ticket = await find_sale(tx, visit.organization_id, run.fact_id) if run.sale_id is not None else None
    name = mask.name(visit, people[0].first_name, people[0].last_name) if people else None
    return render_journey(
        visit,
        "journeys/run.html",
        journey.row,
        run=run,
        canonical=RUN.encode(run.id),
        customer=PROFILE.encode(run.profile_id),
        name=name,
        sale=sales[0] if sales else None,
        ticket=None if ticket is None else ticket.ticket.external_id,
        lines=describe_trace(visit, run, rows, definitions[run.journey_id, run.version], context),
        run_states=RUN_STATES,
        outcome=label_outcome(run.outcome),
    )


async def resume(visit: Visit) -> Response:
    async with visit.database.transaction() as tx:
        journey = await find_journey(tx, visit)
        run = await _find_run(tx, visit, journey)
        await resume_run(tx, visit.organization_id, run.id)
        await record_act(tx, visit, "journey.resume_run", RUN.encode(run.id))
    return redirect(visit, journey_url(visit, journey.row, "runs", RUN.encode(run.id)), done="The step is tried again.")


async def _find_run(tx: Tx, visit: Visit, journey: Journey) -> RunRow:
    identifier = RUN.decode(visit.references[1])
    run = None if identifier is None else await find_run(tx, visit.organization_id, identifier)
    if run is None or run.journey_id != journey.row.id:
        raise PageNotFound("We have no such history in this journey. It is deleted 13 months after a customer leaves.")
    return run
