"""Convert a draft to a definition, without its incomplete conditions, and to what the page renders."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from regulars.catalog.entries import find_types, list_entries
from regulars.catalog.model import AttributeType, Catalog
from regulars.conditions.campaign_names import find_campaign_names
from regulars.conditions.check import Fault, Types
from regulars.conditions.comparisons import OFFERED
from regulars.conditions.forms import draft
from regulars.conditions.forms.draft import Node
from regulars.conditions.forms.fields import CHOSEN, Incomplete, condition_of, fit_fields
from regulars.conditions.labels import COMPARISONS, KINDS, TICKET_KINDS, Names
from regulars.conditions.tree import DEPTH_MAX, All, Any, Condition, Group, Nothing, Path, campaigns_of
from regulars.kit.db import Tx
from regulars.kit.ids import CAMPAIGN
from regulars.kit.keyset import PageRequest
from regulars.stores.find import list_stores

_GROUPS: Final[dict[str, type[All] | type[Any] | type[Nothing]]] = {"all": All, "any": Any, "none": Nothing}
_STEP: Final = re.compile(r"\.of\[([0-9]+)\]")
ICONS: Final = {
    "attribute": "tag",
    "consent": "consent",
    "texts": "message",
    "received_campaign": "message",
    "created": "calendar",
    "named": "people",
    "country": "people",
    "segment": "filter",
}


async def fit_tree(tx: Tx, organization_id: UUID, root: Node) -> tuple[Types, Types]:
    """Adapt the fields of each condition to the declared type of its key; return the types of attributes and
    properties."""
    nodes = [node for _, node in draft.walk(root)]
    attributes = await find_types(tx, organization_id, Catalog.ATTRIBUTES, {it.one("key") for it in nodes} - {""})
    properties = await find_types(tx, organization_id, Catalog.PRODUCTS, {it.one("pkey") for it in nodes} - {""})
    for node in nodes:
        fit_fields(node, attributes, properties)
    draft.number(root)
    return attributes, properties


@dataclass(slots=True)
class Built:
    """The complete part of a draft. `paths` maps a path in the definition to the path in the draft."""

    match: Group
    paths: dict[Path, Path] = field(default_factory=dict)
    incomplete: dict[Path, str] = field(default_factory=dict)


def build(root: Node) -> Built:
    """The definition of a draft; incomplete conditions are omitted from it and listed separately."""
    built = Built(All())
    built.match = _group(root, (), (), built)
    return built


def _group(node: Node, path: Path, place: Path, built: Built) -> Group:
    """`path` is the path of the node in the draft, `place` that of its group in the definition."""
    built.paths[place] = path
    inner: list[Condition] = []
    for number, inner_node in enumerate(node.inner):
        here = (*path, number)
        if inner_node.is_group:
            inner.append(_group(inner_node, here, (*place, len(inner)), built))
            continue
        try:
            condition = condition_of(inner_node)
        except Incomplete as error:
            built.incomplete[here] = str(error)
            continue
        built.paths[(*place, len(inner))] = here
        inner.append(condition)
    return _GROUPS[node.kind](of=tuple(inner))


def faults_by_path(built: Built, faults: Sequence[Fault]) -> dict[Path, list[Fault]]:
    """The faults by their path in the draft."""
    found: dict[Path, list[Fault]] = {}
    for fault in faults:
        place = tuple(int(step) for step in _STEP.findall(fault.place))
        found.setdefault(built.paths.get(place, ()), []).append(fault)
    for path, message in built.incomplete.items():
        found.setdefault(path, []).append(Fault("", message))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key and its declared type; a key without a type is unknown."""

    key: str
    type: str | None
    values: tuple[str, ...]
    # Whether its values are chosen from a list.
    is_chosen: bool = False
    comparison: str
    comparisons: list[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    """One condition or group as the page renders it."""

    node: Node
    place: str
    kind: str
    label: str
    icon: str
    count: int | None
    unreadable: int
    # The URL of the list of customers with unreadable values; None for a draft that was never saved.
    unreadable_url: str | None
    faults: list[str]
    inner: list["NodeView"]
    attribute: Key
    product: Key
    may_have_groups: bool
    is_new: bool

    @property
    def id(self) -> str:
        return self.place.replace(".", "-")

    @property
    def is_group(self) -> bool:
        return self.node.is_group

    def name(self, member: str) -> str:
        return f"{self.place}~{member}"

    def field_id(self, member: str) -> str:
        return f"{self.id}-{member}"

    def one(self, member: str, default: str = "") -> str:
        return self.node.one(member, default)

    def several(self, member: str) -> list[str]:
        return self.node.several(member)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """The data that all conditions of a page share: types, counts, faults and the new node."""

    attributes: Types
    properties: Types
    counts: Mapping[Path, tuple[int, int]]
    faults: Mapping[Path, Sequence[Fault]]
    new: Path | None
    members_url: str | None = None


def view(node: Node, scene: Scene, path: Path = ()) -> NodeView:
    count, unreadable = scene.counts.get(path, (None, 0))
    place = draft.place_of(path)
    return NodeView(
        node=node,
        place=place,
        kind=node.kind,
        label={**KINDS, **TICKET_KINDS}.get(node.kind, ""),
        icon=ICONS.get(node.kind, "ticket"),
        count=count,
        unreadable=unreadable,
        unreadable_url=None if scene.members_url is None else f"{scene.members_url}?unreadable={place}",
        faults=[fault.message for fault in scene.faults.get(path, ())],
        inner=[view(inner, scene, (*path, number)) for number, inner in enumerate(node.inner)],
        attribute=_key(node, "", scene.attributes),
        product=_key(node, "p", scene.properties),
        may_have_groups=len(path) + 1 < DEPTH_MAX,
        is_new=scene.new == path,
    )


def _key(node: Node, prefix: str, types: Types) -> Key:
    key, comparison = node.one(f"{prefix}key"), node.one(f"{prefix}cmp")
    if key not in types:
        return Key(key=key, type=None, values=(), comparison=comparison, comparisons=[])
    declared, values = types[key]
    offered = list[str](OFFERED[declared])
    if comparison and comparison not in offered:
        # The type of the key has changed since it was saved; the page shows the old comparison together with the fault.
        offered.insert(0, comparison)
    return Key(
        key=key,
        type=declared.value,
        values=("true", "false") if declared is AttributeType.BOOLEAN else tuple(values),
        is_chosen=declared in CHOSEN,
        comparison=comparison,
        comparisons=[(it, COMPARISONS.get(it, it)) for it in offered],
    )


OFFERED_MAX: Final = 200
COUNTRY_CHARACTERS: Final = 2
Choices = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class FormChoices:
    attributes: list[str]
    properties: list[str]
    stores: list[tuple[str, str]]
    segments: list[tuple[str, str]]
    journeys: list[tuple[str, str]]
    campaigns: list[tuple[str, str]]
    countries: list[tuple[str, str]]

    @property
    def names(self) -> Names:
        return Names(
            stores=dict(self.stores),
            segments=dict(self.segments),
            journeys=dict(self.journeys),
            campaigns=dict(self.campaigns),
        )

    @property
    def kinds(self) -> dict[str, str]:
        """The kinds of conditions that the form offers, with their labels."""
        return {kind: label for kind, label in KINDS.items() if kind != "received_campaign" or self.campaigns}


async def find_choices(
    tx: Tx,
    organization_id: UUID,
    territories: Mapping[str, str],
    *,
    segments: Choices = (),
    journeys: Choices = (),
    match: Condition,
) -> FormChoices:
    """The choices that the form offers. `territories` has the names of countries in the language of the user; segments
    and journeys are pairs of id and name. The offered campaigns are those that `match` refers to and the newest
    ones."""
    received = [campaign_id for it in campaigns_of(match) if (campaign_id := CAMPAIGN.decode(it)) is not None]
    campaigns = await find_campaign_names(tx, organization_id, received, newest=OFFERED_MAX)
    attributes = await list_entries(tx, organization_id, Catalog.ATTRIBUTES, PageRequest(OFFERED_MAX))
    properties = await list_entries(tx, organization_id, Catalog.PRODUCTS, PageRequest(OFFERED_MAX))
    stores = await list_stores(tx, organization_id, after=None, limit=OFFERED_MAX)
    named = territories.items()
    countries = [(code, str(name)) for code, name in named if len(code) == COUNTRY_CHARACTERS and code.isalpha()]
    return FormChoices(
        attributes=[entry.key for entry in attributes],
        properties=[entry.key for entry in properties],
        stores=[(store.external_id, store.name or store.external_id) for store in stores],
        segments=list(segments),
        journeys=list(journeys),
        campaigns=[(CAMPAIGN.encode(campaign_id), name) for campaign_id, name in campaigns],
        countries=sorted(countries, key=lambda it: it[1]),
    )
