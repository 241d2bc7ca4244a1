"""What stands at the right of the builder; and the form of the conditions of the entry or of a branch."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from regulars.conditions.check import Fault
from regulars.conditions.forms.draft import Node
from regulars.conditions.forms.fields import node_of
from regulars.conditions.forms.offered import OFFERED_MAX, find_offered
from regulars.conditions.forms.view import Scene, build, faults_by_path, settle_tree, view
from regulars.conditions.labels import GROUPS, KINDS, TICKET_KINDS
from regulars.conditions.tree import Condition, Group, Path
from regulars.journeys.drafts.change import Draft
from regulars.journeys.drafts.tree import FILTER, condition_of, step_at
from regulars.journeys.manage import list_journeys
from regulars.kit.db import Tx
from regulars.kit.etag import etag_of
from regulars.kit.ids import JOURNEY, SEGMENT
from regulars.segments.kept.manage import list_segments
from regulars.web.form import FormState
from regulars.web.visit import Visit


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """`was` is the etag of the piece that the form is about."""

    name: str
    form: FormState
    was: str = ""
    place: str = ""
    more: Mapping[str, Any]


async def rules_panel(
    tx: Tx,
    visit: Visit,
    draft: Draft,
    owner: str,
    *,
    root: Node | None = None,
    new: Path | None = None,
    form: FormState | None = None,
) -> Panel:
    """`root` is the tree as it was sent; without it the form shows what the draft has, and what is wrong with it."""
    condition = condition_of(draft.definition, owner)
    faults: list[Fault] = []
    if root is None:
        root = _tree_of(condition)
        place = FILTER if owner == FILTER else step_at(draft.definition, owner).id or owner
        faults = [fault for fault in draft.faults if fault.place == place or fault.place.startswith(f"{place}.")]
    attributes, properties = await settle_tree(tx, visit.organization_id, root)
    built = build(root)
    scene = Scene(
        attributes=attributes, properties=properties, counts={}, faults=faults_by_path(built, faults), new=new
    )
    # A journey that begins with a consent has no ticket to ask about.
    kinds = KINDS if draft.definition.trigger == "opt_in" else {**KINDS, **TICKET_KINDS}
    more: dict[str, Any] = {"tree": view(root, scene), "owner": owner, "groups": GROUPS, "kinds": kinds}
    more["offered"] = await find_offered(
        tx,
        visit.organization_id,
        visit.format.locale.territories,
        segments=[(SEGMENT.encode(it.id), it.name) for it in await list_segments(tx, visit.organization_id)],
        journeys=[
            (JOURNEY.encode(it.id), it.name) for it in await list_journeys(tx, visit.organization_id, limit=OFFERED_MAX)
        ],
    )
    return Panel(name="rules", form=form or FormState(), was=etag_of(condition), place=owner, more=more)


def _tree_of(condition: Condition | None) -> Node:
    """A form always begins with a group."""
    if condition is None:
        return Node("all")
    return node_of(condition) if isinstance(condition, Group) else Node("all", inner=[node_of(condition)])
