"""The page of the journey builder: the flow on the left, the form of the selected part (the panel) on the right."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from regulars.conditions.check import Fault
from regulars.conditions.field_suggestions import SUGGESTIONS_PATH
from regulars.conditions.forms.catalog import TICKET_KINDS
from regulars.conditions.forms.fields import node_of
from regulars.conditions.forms.node import Node
from regulars.conditions.forms.view import TreeContext, build, faults_by_path, find_choices, fit_tree, view
from regulars.conditions.labels import GROUPS
from regulars.conditions.tree import Condition, Group, Path
from regulars.journeys import labels
from regulars.journeys.definition import WEEKDAYS, Branch, Definition, SendText
from regulars.journeys.drafts import Draft, load_draft
from regulars.journeys.manage import list_choices
from regulars.journeys.pages.common import describe_entry, journey_url, read_journey_id, render_journey
from regulars.journeys.pages.edit.message_editor import TextMeasure, field_labels, measure_text
from regulars.journeys.pages.edit.step_forms import CHOICES, STEP_KINDS, fill_form, new_form
from regulars.journeys.pages.flow import build_cards, step_labels
from regulars.journeys.program import FILTER
from regulars.journeys.step_tree import StepNotFound, condition_of, split_place, step_at, steps_in
from regulars.kit.db import Tx
from regulars.kit.etag import etag_of
from regulars.links.marks import short_url
from regulars.segments.saved.manage import list_choices as list_segment_choices
from regulars.texts.settings.store import load_texting
from regulars.texts.team_numbers import find_team_number
from regulars.texts.text_form import list_language_rows, list_variables, read_text_form
from regulars.web.errors import PageNotFound
from regulars.web.form import FormState
from regulars.web.visit import Visit


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """The form on the right. `was` is the etag of the part of the draft that the form edits, which the form sends back;
    `place` is the path of the step, such as 3.else.1."""

    name: str
    form: FormState
    was: str = ""
    place: str = ""
    # Further template values.
    values: Mapping[str, Any]


async def condition_panel(
    tx: Tx,
    visit: Visit,
    draft: Draft,
    owner: str,
    *,
    root: Node | None = None,
    new: Path | None = None,
    form: FormState | None = None,
) -> Panel:
    """The form of a condition. `owner` is `filter`, or the place of a branch. `root` is the tree that the form sent,
    `new` the path of a node that a button added; without `root` the panel shows the draft's condition and faults."""
    condition = condition_of(draft.definition, owner)
    faults: list[Fault] = []
    if root is None:
        root = _tree_of(condition)
        location = FILTER if owner == FILTER else step_at(draft.definition, owner).id or owner
        faults = [fault for fault in draft.faults if fault.place == location or fault.place.startswith(f"{location}.")]
    # Adapts the conditions to the types of the attributes and properties that they refer to.
    attributes, properties = await fit_tree(tx, visit.organization_id, root)
    built = build(root)
    context = TreeContext(
        attributes=attributes,
        properties=properties,
        faults=faults_by_path(built, faults),
        new=new,
        suggest_url=visit.url(SUGGESTIONS_PATH),
    )
    choices = await find_choices(
        tx,
        visit.organization_id,
        visit.format.locale.territories,
        root,
        segments=await list_segment_choices(tx, visit.organization_id),
        journeys=await list_choices(tx, visit.organization_id),
    )
    # A journey that an opt-in triggers has no ticket, so conditions on tickets are not offered.
    kinds = choices.kinds if draft.definition.trigger == "opt_in" else {**choices.kinds, **TICKET_KINDS}
    values = {"tree": view(root, context), "owner": owner, "groups": GROUPS, "kinds": kinds, "offered": choices}
    return Panel(name="rules", form=form or FormState(), was=etag_of(condition), place=owner, values=values)


def _tree_of(condition: Condition | None) -> Node:
    """The condition as a tree for the form, whose root is always a group."""
    if condition is None:
        return Node("all")
    return node_of(condition) if isinstance(condition, Group) else Node("all", inner=[node_of(condition)])


async def show_builder(visit: Visit) -> Response:
    async with visit.database.reading() as tx:
        draft = await find_draft(tx, visit)
        return render_builder(visit, draft, await choose_panel(tx, visit, draft))


async def find_draft(tx: Tx, visit: Visit) -> Draft:
    draft = await load_draft(tx, visit.organization_id, read_journey_id(visit))
    if draft.row.state == "archived":
        raise PageNotFound("A journey that has ended cannot be edited; duplicate it.")
    return draft


async def choose_panel(tx: Tx, visit: Visit, draft: Draft) -> Panel:
    """The panel that the URL selects: a step, a new step, the entry, the filter or a condition."""
    query = visit.query
    if query.get("step") == FILTER or "filter" in query:
        return await condition_panel(tx, visit, draft, FILTER)
    if "step" in query:
        return await step_panel(tx, visit, draft, query["step"])
    if "add" in query:
        return await add_panel(tx, visit, draft, query["add"], query.get("kind", ""))
    if "entry" in query:
        return await entry_panel(draft)
    return Panel(name="overview", form=FormState(), values={})


async def step_panel(
    tx: Tx, visit: Visit, draft: Draft, place: str, *, form: FormState | None = None, search: str = ""
) -> Panel:
    step = step_at(draft.definition, place)
    if isinstance(step, Branch):
        return await condition_panel(tx, visit, draft, place)
    filled_form = form or fill_form(step)
    values: dict[str, Any] = {"summary": labels.describe_step(step), "kind": filled_form.value("kind")}
    if isinstance(step, SendText):
        values |= await message_values(tx, visit, draft, filled_form, search=search)
    return Panel(name="step", form=filled_form, was=etag_of(step), place=place, values=values)


async def add_panel(
    tx: Tx, visit: Visit, draft: Draft, place: str, kind: str, *, form: FormState | None = None, search: str = ""
) -> Panel:
    path, index = split_place(place)
    steps = steps_in(draft.definition, path)
    if not 0 <= index <= len(steps):
        raise StepNotFound
    kind = kind if kind in STEP_KINDS else ""
    filled_form = form or new_form(kind)
    values: dict[str, Any] = {"kind": kind, "choices": CHOICES}
    if kind == "send_text":
        values |= await message_values(tx, visit, draft, filled_form, search=search)
    return Panel(name="add", form=filled_form, was=etag_of(steps), place=place, values=values)


async def entry_panel(draft: Draft, *, form: FormState | None = None) -> Panel:
    definition = draft.definition
    values = {
        "name": definition.name,
        "trigger": definition.trigger,
        "reentry": definition.reentry.policy,
        "reentry_days": str(definition.reentry.days or ""),
        **{f"exit_{event}": "on" for event in definition.exit_on},
    }
    return Panel(name="entry", form=form or FormState(values), was=etag_of(entry_of(definition)), values={})


def entry_of(definition: Definition) -> object:
    """The part of the definition that the entry form edits."""
    return (definition.name, definition.trigger, definition.reentry, definition.exit_on)


async def message_values(tx: Tx, visit: Visit, draft: Draft, form: FormState, *, search: str = "") -> dict[str, Any]:
    """The template values of the form of a text step."""
    content = read_text_form(form.values, lambda _name, _sentence: None)
    measure: TextMeasure = await measure_text(tx, visit, draft.definition, content, search=search)
    texting = await load_texting(tx, visit.organization_id)
    number = None if texting is None else await find_team_number(tx, visit.user.id, texting=texting)
    fields, keys = await list_variables(tx, visit.organization_id, field_labels(draft.definition))
    return {
        "measure": measure,
        "fields": fields,
        "attributes": [(key, key) for key in dict.fromkeys([*keys, form.value("by")]) if key],
        "rows": list_language_rows(form.values),
        "test": "",
        "has_number": number is not None and number.is_verified,
        "has_short_links": short_url("", is_demo=visit.organization.is_demo) is not None,
        "search": search,
        "measure_url": journey_url(visit, draft.row, "edit", "measure"),
    }


def render_builder(visit: Visit, draft: Draft, panel: Panel, *, status: int = 200) -> Response:
    definition = draft.definition
    cards = build_cards(definition, draft.faults, names=draft.names)
    return render_journey(
        visit,
        "journeys/edit.html",
        draft.row,
        status=status,
        draft=draft,
        edit=journey_url(visit, draft.row, "edit"),
        panel=panel,
        form=panel.form,
        cards=cards,
        labels=step_labels(cards),
        end=len(definition.steps) + 1,
        whole=etag_of(definition),
        triggers=[(key, label, "") for key, label in labels.TRIGGERS.items()],
        weekdays=WEEKDAYS,
        **describe_entry(definition, draft.names, draft.faults),
    )
