"""What the forms of conditions do: one of the filter or of a branch is added, changed, regrouped or taken out."""

from starlette.responses import Response

from regulars.conditions.tree import Condition
from regulars.journeys.drafts import tree
from regulars.journeys.drafts.change import Draft
from regulars.journeys.pages.edit import builder
from regulars.journeys.pages.edit.making import Edit, edit
from regulars.journeys.pages.edit.questions import read_condition
from regulars.journeys.words import tell_condition
from regulars.kit.db import Tx
from regulars.web.form import FormState
from regulars.web.visit import Visit


async def change_condition(visit: Visit) -> Response:
    """One condition of the filter or of a branch: added, changed, regrouped or taken out."""
    form, owner = FormState(visit.form), visit.form.get("of", "")
    is_new, way = "into" in visit.form, visit.form.get("into", visit.form.get("at", ""))

    async def plan(tx: Tx, draft: Draft) -> Edit:
        root, changed = tree.condition_of(draft.definition, owner), None
        if "remove" in visit.form:
            changed = tree.with_condition(draft.definition, owner, tree.remove_part(root, way))
        else:
            part = read_condition(form, visit.form_lists.get("stores", []))
            if part is not None:
                made = tree.add_part(root, way, part) if is_new else _put(root, way, part)
                changed = tree.with_condition(draft.definition, owner, made)
        return Edit(
            piece=root,
            changed=changed,
            panel=lambda: builder.condition_panel(tx, visit, draft, visit.form, form=form),
            now="Nothing is asked any more." if root is None else tell_condition(root),
            then="?filter=1" if owner == tree.FILTER else f"?step={owner}",
        )

    return await edit(visit, plan)


def _put(root: Condition | None, way: str, part: Condition) -> Condition:
    """A group keeps what is in it."""
    there = tree.part_at(root, way)
    tag = str(part.__struct_config__.tag)
    is_regrouped = tag in tree.GROUPS and there is not None and str(there.__struct_config__.tag) in tree.GROUPS
    return tree.regroup(root, way, tag) if is_regrouped else tree.replace_part(root, way, part)
