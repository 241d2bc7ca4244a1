"""What the forms of steps do. Each makes one change of the draft, and says who was faster where somebody was."""

from dataclasses import replace
from typing import cast

import msgspec
from starlette.responses import Response

from regulars.journeys.definition import Definition, Reentry, Step
from regulars.journeys.drafts import tree
from regulars.journeys.drafts.change import Draft, PieceChanged, fingerprint
from regulars.journeys.pages.edit import builder
from regulars.journeys.pages.edit.forms import KINDS, read_step
from regulars.journeys.pages.edit.making import builder_url, change, clash, places, refuse, was_faster
from regulars.journeys.pages.edit.message import replace_character
from regulars.journeys.program import Forking, walk
from regulars.journeys.words import TRIGGERS, tell_step
from regulars.kit.db import Tx
from regulars.web.errors import PageNotFound
from regulars.web.form import FormState
from regulars.web.render import redirect, render
from regulars.web.visit import Visit

NAME_CHARACTERS_MAX = 120
REENTRY_DAYS_MAX = 3_650


async def change_entry(visit: Visit) -> Response:
    """Name, trigger, whether a customer comes in again, and what else ends a run."""
    form = FormState(visit.form)
    name = form.text("name", characters_max=NAME_CHARACTERS_MAX)
    trigger = form.choice("trigger", tuple(TRIGGERS))
    policy = form.choice("reentry", ("always", "never", "after_days"))
    days = form.whole("reentry_days", minimum=1, maximum=REENTRY_DAYS_MAX) if policy == "after_days" else None
    exits = tuple(one for one in ("purchase", "return") if form.is_checked(f"exit_{one}"))
    async with visit.database.transaction() as tx:
        if form.is_refused:
            draft = await builder.find_draft(tx, visit)
            return refuse(visit, draft, builder.entry_panel(draft, form=form))

        def alter(definition: Definition) -> Definition:
            reentry = Reentry(policy=policy, days=days)  # type: ignore[arg-type]  # one of the three, as was checked
            changed = msgspec.structs.replace(definition, name=name, reentry=reentry, exit_on=exits)
            return msgspec.structs.replace(changed, trigger=trigger)

        try:
            await change(tx, visit, builder.entry_of, alter)
        except PieceChanged as error:
            panel = builder.entry_panel(error.draft, form=form)
            return clash(visit, error.draft, panel, f"It is called “{error.draft.definition.name}” now.")
    return redirect(visit, builder_url(visit))


async def add_step(visit: Visit) -> Response:
    form, place, kind = FormState(visit.form), visit.form.get("place", ""), visit.form.get("kind", "")
    if kind not in KINDS:
        return redirect(visit, f"{builder_url(visit)}?add={place}")
    async with visit.database.transaction() as tx:
        with places():
            draft = await builder.find_draft(tx, visit)
            step = read_step(form, kind)
            if step is None:
                panel = await builder.add_panel(tx, visit, draft, place, kind, form=form)
                return refuse(visit, draft, panel)
            container, _ = tree.split_place(place)
            try:
                await change(
                    tx,
                    visit,
                    lambda definition: tree.steps_in(definition, container),
                    lambda definition: tree.insert_step(definition, place, step),
                )
            except PieceChanged as error:
                panel = await builder.add_panel(tx, visit, error.draft, place, kind, form=form)
                return clash(visit, error.draft, panel, "The steps beside it are not the same any more.")
    following = f"?step={place}" if kind == "branch" else f"#s-{place}"
    return redirect(visit, f"{builder_url(visit)}{following}", done=f"Added: {tell_step(step).kind.lower()}.")


async def change_step(visit: Visit) -> Response:
    form, place = FormState(visit.form), visit.form.get("place", "")
    async with visit.database.transaction() as tx:
        with places():
            draft = await builder.find_draft(tx, visit)
            there = _find_moved(draft, place, visit.form.get("was", ""))
            if there is None:
                return await _gone(tx, visit, draft, form)
            place, step_there = there
            step = read_step(form, form.value("kind"), there=step_there)
            if step is None:
                panel = await builder.step_panel(tx, visit, draft, place, form=form)
                return refuse(visit, draft, panel)
            try:
                await change(
                    tx,
                    visit,
                    lambda definition: tree.step_at(definition, place),
                    lambda definition: tree.replace_step(definition, place, step),
                )
            except PieceChanged as error:
                theirs = tell_step(tree.step_at(error.draft.definition, place)).name
                panel = await builder.step_panel(tx, visit, error.draft, place, form=form)
                return clash(visit, error.draft, panel, theirs)
    return redirect(
        visit, f"{builder_url(visit)}#s-{place}", done=f"Kept in the draft: {tell_step(step).kind.lower()}."
    )


async def measure_step(visit: Visit) -> Response:
    """Nothing is kept: the same form comes back, measured; perhaps with a character replaced or a place put in."""
    values = dict(visit.form)
    text = values.get("text", "").replace("\r\n", "\n")
    if values.get("replace"):
        text = replace_character(text, values["replace"])
    if "insert" in values and values.get("field"):
        text = f"{text} {values['field']}".strip()
    form, place = FormState({**values, "text": text}), values.get("place", "")
    async with visit.database.transaction() as tx:
        with places():
            draft = await builder.find_draft(tx, visit)
            who = values.get("who", "").strip()
            if values.get("is_new"):
                panel = await builder.add_panel(tx, visit, draft, place, "send_text", form=form, who=who)
            else:
                panel = await builder.step_panel(tx, visit, draft, place, form=form, who=who)
            # What the form was drawn from stays what it says, or a later save would miss that somebody was faster.
            panel = replace(panel, was=values.get("was", ""))
            return builder.render_builder(visit, draft, panel)


async def move_step(visit: Visit) -> Response:
    place, way = visit.form.get("place", ""), visit.form.get("way", "")
    if way not in {"up", "down"}:
        raise PageNotFound("A step moves up or down.")
    moved_to = place
    async with visit.database.transaction() as tx:
        with places():

            def alter(definition: Definition) -> Definition:
                nonlocal moved_to
                changed, moved_to = tree.move_step(definition, place, cast("tree.Way", way))
                return changed

            try:
                await change(tx, visit, lambda definition: definition, alter)
            except PieceChanged as error:
                raise was_faster(error) from None
    return redirect(visit, f"{builder_url(visit)}#s-{moved_to}")


async def remove_step(visit: Visit) -> Response:
    place = visit.form.get("place", "")
    async with visit.database.transaction() as tx:
        with places():
            draft = await builder.find_draft(tx, visit)
            step = tree.step_at(draft.definition, place)
            if isinstance(step, Forking) and (step.then or step.otherwise) and not visit.form.get("sure"):
                return render(
                    visit,
                    "journeys/remove_step.html",
                    form=FormState(),
                    told=tell_step(step),
                    inside=_count(step),
                    place=place,
                    was=visit.form.get("was", ""),
                    edit=builder_url(visit),
                )
            try:
                await change(
                    tx,
                    visit,
                    lambda definition: tree.step_at(definition, place),
                    lambda definition: tree.remove_step(definition, place),
                )
            except PieceChanged as error:
                raise was_faster(error) from None
    return redirect(visit, builder_url(visit), done=f"Removed: {tell_step(step).kind.lower()}.")


def _find_moved(draft: Draft, place: str, was: str) -> tuple[str, Step] | None:
    """The step that the form is about: where it stood, or where the only one like it stands since somebody put others
    before it. None: it is gone."""
    try:
        there = tree.step_at(draft.definition, place)
    except tree.NoSuchPlace:
        there = None
    if there is not None and fingerprint(there) == was:
        return place, there
    moved = [(at, step) for at, step in tree.walk_places(draft.definition) if fingerprint(step) == was]
    if len(moved) == 1:
        return moved[0]
    return None if there is None else (place, there)


async def _gone(tx: Tx, visit: Visit, draft: Draft, form: FormState) -> Response:
    """Somebody removed the step: what was written can be added again, at the end."""
    place = str(len(draft.definition.steps) + 1)
    panel = await builder.add_panel(tx, visit, draft, place, form.value("kind"), form=form)
    return clash(visit, draft, panel, "The step was removed. Yours would be added at the end.")


def _count(step: Step) -> int:
    """How many steps hang on it."""
    return sum(1 for _ in walk((step,))) - 1
