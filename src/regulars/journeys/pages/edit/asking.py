"""What the forms of conditions do: one of the filter or of a branch is added, changed, regrouped or taken out."""

from collections.abc import Callable

from starlette.responses import Response

from regulars.journeys.definition import Condition, Definition
from regulars.journeys.drafts import tree
from regulars.journeys.drafts.change import PieceChanged
from regulars.journeys.pages.edit import builder
from regulars.journeys.pages.edit.making import builder_url, change, clash, places, refuse
from regulars.journeys.pages.edit.questions import read_condition
from regulars.journeys.words import tell_condition
from regulars.web.form import FormState
from regulars.web.render import redirect
from regulars.web.visit import Visit


async def change_condition(visit: Visit) -> Response:
    """One condition of the filter or of a branch: added, changed, regrouped or taken out."""
    form, owner = FormState(visit.form), visit.form.get("of", "")
    is_new, way = "into" in visit.form, visit.form.get("into", visit.form.get("at", ""))
    async with visit.database.transaction() as tx:
        with places():
            draft = await builder.find_draft(tx, visit)
            alter: Callable[[Definition], Definition]
            if "remove" in visit.form:
                alter = lambda definition: _with(definition, owner, tree.remove_part(_root(definition, owner), way))  # noqa: E731  # one of three like it
            else:
                part = read_condition(form, visit.form_lists.get("stores", []))
                if part is None:
                    panel = await builder.condition_panel(tx, visit, draft, visit.form, form=form)
                    return refuse(visit, draft, panel)
                act = tree.add_part if is_new else _put
                alter = lambda definition: _with(definition, owner, act(_root(definition, owner), way, part))  # noqa: E731  # the same
            try:
                await change(tx, visit, lambda definition: _root(definition, owner), alter)
            except PieceChanged as error:
                root = _root(error.draft.definition, owner)
                theirs = "Nothing is asked any more." if root is None else tell_condition(root)
                panel = await builder.condition_panel(tx, visit, error.draft, visit.form, form=form)
                return clash(visit, error.draft, panel, theirs)
    target = "filter=1" if owner == tree.FILTER else f"step={owner}"
    return redirect(visit, f"{builder_url(visit)}?{target}")


def _put(root: Condition | None, way: str, part: Condition) -> Condition:
    """A group keeps what is in it."""
    there = tree.part_at(root, way)
    tag = str(part.__struct_config__.tag)
    is_regrouped = tag in tree.GROUPS and there is not None and str(there.__struct_config__.tag) in tree.GROUPS
    return tree.regroup(root, way, tag) if is_regrouped else tree.replace_part(root, way, part)


def _root(definition: Definition, owner: str) -> Condition | None:
    return tree.condition_of(definition, owner)


def _with(definition: Definition, owner: str, condition: Condition | None) -> Definition:
    return tree.with_condition(definition, owner, condition)
