"""Handles the forms of the journey builder; each form makes one change of the draft.

A step is addressed by its place in the definition, such as `3.else.1`. The field `was` has the etag of the edited part
of the draft when the form was shown, to detect a change by another user.
"""

from dataclasses import replace
from typing import Literal, cast

import msgspec
from starlette.responses import Response

from regulars.accounts.audit.log import record_act
from regulars.conditions.forms.draft import apply_action, read_tree
from regulars.conditions.forms.view import build, fit_tree
from regulars.conditions.tree import Condition, Group, Nothing
from regulars.journeys import step_tree as tree
from regulars.journeys.definition import Reentry, Step
from regulars.journeys.drafts import Draft
from regulars.journeys.labels import TRIGGERS, describe_condition, describe_step
from regulars.journeys.pages.edit import builder
from regulars.journeys.pages.edit.builder import condition_panel
from regulars.journeys.pages.edit.drafts import DraftChange, apply_change, builder_url
from regulars.journeys.pages.edit.step_forms import STEP_KINDS, read_step
from regulars.journeys.program import Fork, walk_places, walk_steps
from regulars.kit.db import Tx
from regulars.kit.etag import etag_of
from regulars.kit.ids import TEXT
from regulars.texts.errors import SettingRefused
from regulars.texts.team_numbers import send_test_text
from regulars.texts.template import TemplateError
from regulars.texts.text_form import apply_button, read_text_form
from regulars.web.errors import PageNotFound
from regulars.web.form import FormState
from regulars.web.render import redirect, render
from regulars.web.visit import Visit

NAME_CHARACTERS_MAX = 120
REENTRY_DAYS_MAX = 3_650


async def change_entry(visit: Visit) -> Response:
    """Change the name, the trigger, re-entry, and the sales that end a run."""
    form = FormState(visit.form)
    name = form.text("name", characters_max=NAME_CHARACTERS_MAX)
    trigger = form.choice("trigger", tuple(TRIGGERS))
    policy = cast("Literal['always', 'never', 'after_days']", form.choice("reentry", ("always", "never", "after_days")))
    days = form.integer("reentry_days", minimum=1, maximum=REENTRY_DAYS_MAX) if policy == "after_days" else None
    exits = tuple(event for event in ("purchase", "return") if form.is_checked(f"exit_{event}"))

    async def plan(_: Tx, draft: Draft) -> DraftChange:
        changed = None
        if not form.is_refused:
            reentry = Reentry(policy=policy, days=days)
            changed = msgspec.structs.replace(
                draft.definition, name=name, trigger=trigger, reentry=reentry, exit_on=exits
            )
        return DraftChange(
            edited_part=builder.entry_of(draft.definition),
            new_definition=changed,
            panel=lambda: builder.entry_panel(draft, form=form),
            current_text=f"The name is now “{draft.definition.name}”.",
            url_suffix="" if draft.definition.steps else "?add=1",
        )

    return await apply_change(visit, plan)


async def add_step(visit: Visit) -> Response:
    form, place, kind = FormState(visit.form), visit.form.get("place", ""), visit.form.get("kind", "")
    if kind not in STEP_KINDS:
        return redirect(visit, f"{builder_url(visit)}?add={place}")

    async def plan(tx: Tx, draft: Draft) -> DraftChange:
        path, _ = tree.split_place(place)
        steps, step = tree.steps_in(draft.definition, path), read_step(form, kind)
        return DraftChange(
            edited_part=steps,
            new_definition=None if step is None else tree.insert_step(draft.definition, place, step),
            panel=lambda: builder.add_panel(tx, visit, draft, place, kind, form=form),
            current_text="The neighbouring steps have changed.",
            url_suffix=_where_after(place, kind),
            message=None if step is None else f"Added: {describe_step(step).kind.lower()}.",
        )

    return await apply_change(visit, plan)


def _where_after(place: str, kind: str) -> str:
    """What the builder shows after a step was added: the conditions of a branch, else the choice of the next step."""
    match kind:
        case "branch":
            return f"?step={place}"
        case "exit":
            return f"#s-{place}"
        case _:
            return f"?add={tree.place_after(place)}#panel"


async def change_step(visit: Visit) -> Response:
    form = FormState(visit.form)

    async def plan(tx: Tx, draft: Draft) -> DraftChange:
        found = _find_step(draft, visit.form.get("place", ""), visit.form.get("was", ""))
        if found is None:
            end = str(len(draft.definition.steps) + 1)
            return DraftChange(
                edited_part=None,
                new_definition=draft.definition,
                panel=lambda: builder.add_panel(tx, visit, draft, end, form.value("kind"), form=form),
                current_text="The step was removed. Your version will be added at the end.",
            )
        place, existing = found
        step = read_step(form, form.value("kind"), existing=existing)
        return DraftChange(
            edited_part=existing,
            new_definition=None if step is None else tree.replace_step(draft.definition, place, step),
            panel=lambda: builder.step_panel(tx, visit, draft, place, form=form),
            current_text=describe_step(existing).name,
            url_suffix=f"#s-{place}",
            message=None if step is None else f"Saved in the draft: {describe_step(step).kind.lower()}.",
        )

    return await apply_change(visit, plan)


async def measure_step(visit: Visit) -> Response:
    """Return the form with the length of its text, after a button changed the text; saves nothing."""
    return await _show_text(visit, dict(visit.form), "")


async def test_step(visit: Visit) -> Response:
    """Send the text of the form in the chosen language to the phone number of the signed-in user; return the form."""
    values = dict(visit.form)
    content = read_text_form(values, lambda _name, _sentence: None)
    try:
        async with visit.database.transaction() as tx:
            text = await send_test_text(
                tx, visit.organization_id, visit.user, content, language=values.get("test_language", "")
            )
            await record_act(tx, visit, "text.test", TEXT.encode(text.id))
        message = "The test text is on its way to your number."
    except (SettingRefused, TemplateError) as error:
        message = f"No test text was sent. {error}"
    return await _show_text(visit, values, message)


async def _show_text(visit: Visit, values: dict[str, str], message: str) -> Response:
    texts = apply_button(values)
    form, place, search = FormState({**values, **texts}), values.get("place", ""), values.get("who", "").strip()
    async with visit.database.reading() as tx:
        draft = await builder.find_draft(tx, visit)
        if values.get("is_new"):
            panel = await builder.add_panel(tx, visit, draft, place, "send_text", form=form, search=search)
        else:
            panel = await builder.step_panel(tx, visit, draft, place, form=form, search=search)
    # The form keeps the etag of the step that the user opened, so that saving cannot overwrite later changes.
    panel = replace(panel, was=values.get("was", ""), values={**panel.values, "test": message})
    return builder.render_builder(visit, draft, panel)


async def move_step(visit: Visit) -> Response:
    place, direction = visit.form.get("place", ""), visit.form.get("way", "")
    if direction not in {"up", "down"}:
        raise PageNotFound("A step moves up or down.")

    async def plan(_: Tx, draft: Draft) -> DraftChange:
        changed, moved_to = tree.move_step(draft.definition, place, cast("tree.Direction", direction))
        return DraftChange(edited_part=draft.definition, new_definition=changed, url_suffix=f"#s-{moved_to}")

    return await apply_change(visit, plan)


async def remove_step(visit: Visit) -> Response:
    """Remove a step; a step with further steps on its paths only after a confirmation."""
    place = visit.form.get("place", "")
    async with visit.database.reading() as tx:
        draft = await builder.find_draft(tx, visit)
    step = tree.step_at(draft.definition, place)
    if isinstance(step, Fork) and (step.then or step.otherwise) and not visit.form.get("sure"):
        return render(
            visit,
            "journeys/remove_step.html",
            form=FormState(),
            summary=describe_step(step),
            # The number of steps on the paths of the step.
            inner_steps=sum(1 for _ in walk_steps((step,))) - 1,
            place=place,
            was=visit.form.get("was", ""),
            edit=builder_url(visit),
        )

    async def plan(_: Tx, draft: Draft) -> DraftChange:
        return DraftChange(
            edited_part=tree.step_at(draft.definition, place),
            new_definition=tree.remove_step(draft.definition, place),
            message=f"Removed: {describe_step(step).kind.lower()}.",
        )

    return await apply_change(visit, plan)


async def change_condition(visit: Visit) -> Response:
    """Save the conditions of the filter or a branch (button `keep`); other buttons return the changed form."""
    owner = visit.form.get("of", "")
    root = read_tree(visit.form_lists)
    if "keep" not in visit.form:
        new_node = apply_action(root, visit.form.get("act", ""))
        async with visit.database.reading() as tx:
            draft = await builder.find_draft(tx, visit)
            panel = await condition_panel(tx, visit, draft, owner, root=root, new=new_node)
        return builder.render_builder(visit, draft, replace(panel, was=visit.form.get("was", "")))
    form = FormState(visit.form)

    async def plan(tx: Tx, draft: Draft) -> DraftChange:
        existing = tree.condition_of(draft.definition, owner)
        # Adapts the conditions to the types of the attributes that they refer to.
        await fit_tree(tx, visit.organization_id, root)
        built = build(root)
        for message in built.incomplete.values():
            form.refuse("rules", message)
        condition = _simplify(built.match)
        return DraftChange(
            edited_part=existing,
            new_definition=None if built.incomplete else tree.with_condition(draft.definition, owner, condition),
            panel=lambda: condition_panel(tx, visit, draft, owner, root=root, form=form),
            current_text="There is no condition now." if existing is None else describe_condition(existing),
            url_suffix=f"#s-{owner}",
            message="Saved in the draft: conditions.",
        )

    return await apply_change(visit, plan)


def _find_step(draft: Draft, place: str, etag: str) -> tuple[str, Step] | None:
    """The step that the form edits, and its current place: that of the only step with the same content, because other
    users may have moved it, or else the given place. None if there is no step."""
    steps = dict(walk_places(draft.definition.steps))
    equal_places = [it for it, step in steps.items() if etag_of(step) == etag]
    current_place = equal_places[0] if len(equal_places) == 1 else place
    return (current_place, steps[current_place]) if current_place in steps else None


def _simplify(match: Group) -> Condition | None:
    """Simplify a group: a group of one condition becomes that condition, unless it negates (`Nothing`), and an empty
    group becomes None."""
    if not match.of:
        return None
    return match.of[0] if len(match.of) == 1 and not isinstance(match, Nothing) else match
