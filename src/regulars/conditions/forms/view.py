"""Converts the draft of a condition tree, which consists of nodes, to a definition without its incomplete conditions,
and to views for a page."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from regulars.catalog.entries import find_types
from regulars.catalog.model import TYPE_LABELS, AttributeType, Catalog, fold_text, list_distinct
from regulars.catalog.suggestions import KnownProducts, find_known_products
from regulars.conditions.campaign_names import find_campaign_names
from regulars.conditions.check import Fault, Types
from regulars.conditions.comparisons import COMPARISONS_BY_TYPE
from regulars.conditions.forms import draft
from regulars.conditions.forms.catalog import FORMS_BY_KIND, QUICK_KINDS
from regulars.conditions.forms.fields import LISTED_TYPES, IncompleteCondition, condition_of, fit_fields
from regulars.conditions.forms.node import Node
from regulars.conditions.forms.parts import Form
from regulars.conditions.forms.typed import append_typed
from regulars.conditions.kinds.texts import TEXTS_DAYS_MAX, TEXTS_OF_JOURNEY_DAYS_MAX
from regulars.conditions.labels import COMPARISONS, SOURCES, Names
from regulars.conditions.tree import DEPTH_MAX, FORMS, All, Any, Condition, Group, Nothing, Path, stores_of
from regulars.kit.db import Tx
from regulars.kit.ids import CAMPAIGN
from regulars.stores.find import find_store_names

_GROUPS: Final[dict[str, type[All] | type[Any] | type[Nothing]]] = {"all": All, "any": Any, "none": Nothing}
# A group has no fields of its own.
_NO_FORM: Final = Form(kind="", label="", parts=())
_INDEX: Final = re.compile(r"\.of\[([0-9]+)\]")


async def fit_tree(tx: Tx, organization_id: UUID, root: Node) -> tuple[Types, Types]:
    """Adapt the fields of each condition to the declared type of its key, and append typed values to their lists.
    Return the types of attributes and properties."""
    nodes = [node for _, node in draft.walk(root)]
    keys, property_keys = ({node.get(name) for node in nodes} - {""} for name in ("key", "pkey"))
    attributes = await find_types(tx, organization_id, Catalog.ATTRIBUTES, keys)
    properties = await find_types(tx, organization_id, Catalog.PRODUCTS, property_keys)
    for node in nodes:
        fit_fields(node, attributes, properties)
    await append_typed(tx, organization_id, root)
    draft.number_nodes(root)
    return attributes, properties


@dataclass(slots=True)
class BuiltDefinition:
    """The definition of a draft. `paths` maps a path in the definition to the path in the draft; `incomplete` has a
    message for each condition that is missing in the definition."""

    match: Group
    paths: dict[Path, Path] = field(default_factory=dict)
    incomplete: dict[Path, str] = field(default_factory=dict)


def build(root: Node) -> BuiltDefinition:
    """Convert the draft to a definition without its incomplete conditions."""
    built = BuiltDefinition(All())
    built.match = _build_group(root, (), (), built)
    return built


def _build_group(node: Node, path: Path, definition_path: Path, built: BuiltDefinition) -> Group:
    """`path` is the node's path in the draft, `definition_path` that of the group built from it in the definition."""
    built.paths[definition_path] = path
    inner: list[Condition] = []
    for number, inner_node in enumerate(node.inner):
        child_path = (*path, number)
        if inner_node.is_group:
            inner.append(_build_group(inner_node, child_path, (*definition_path, len(inner)), built))
            continue
        try:
            condition = condition_of(inner_node)
        except IncompleteCondition as error:
            built.incomplete[child_path] = str(error)
            continue
        built.paths[(*definition_path, len(inner))] = child_path
        inner.append(condition)
    return _GROUPS[node.kind](of=tuple(inner))


def faults_by_path(built: BuiltDefinition, faults: Sequence[Fault]) -> dict[Path, list[Fault]]:
    """The faults by their path in the draft."""
    faults_by_node: dict[Path, list[Fault]] = {}
    for fault in faults:
        path = tuple(int(index) for index in _INDEX.findall(fault.place))
        faults_by_node.setdefault(built.paths.get(path, ()), []).append(fault)
    for path, message in built.incomplete.items():
        faults_by_node.setdefault(path, []).append(Fault("", message))
    return faults_by_node


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyView:
    """The key of an attribute or product property, with its declared type and the comparisons that the form offers. A
    key without a type is unknown."""

    key: str
    type: str | None
    type_label: str = ""
    values: tuple[str, ...]
    # Whether the user chooses its values from a list.
    has_list: bool = False
    comparison: str
    comparisons: list[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    """One condition or group as the page renders it."""

    node: Node
    # The path as text, such as `r.0.1`, with which the names of its form fields begin.
    place: str
    kind: str
    form: Form
    count: int | None
    unreadable: int
    # The URL of the list of customers with unreadable values; None for a draft that was never saved.
    unreadable_url: str | None
    # The URL to which fields send what the user types.
    suggest_url: str
    faults: list[str]
    inner: list["NodeView"]
    attribute: KeyView
    product: KeyView
    may_have_groups: bool
    is_new: bool

    @property
    def id(self) -> str:
        return self.place.replace(".", "-")

    @property
    def is_group(self) -> bool:
        return self.node.is_group

    @property
    def label(self) -> str:
        return self.form.label

    @property
    def quick_kinds(self) -> frozenset[str]:
        """The kinds that have a button of their own."""
        return QUICK_KINDS

    def name(self, field_name: str) -> str:
        return f"{self.place}~{field_name}"

    def field_id(self, field_name: str) -> str:
        return f"{self.id}-{field_name}"

    def get(self, field_name: str, default: str = "") -> str:
        return self.node.get(field_name, default)

    def get_list(self, field_name: str) -> list[str]:
        return self.node.get_list(field_name)

    def has_focus(self, field_name: str) -> bool:
        return self.node.focus == field_name


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeContext:
    """The data for all conditions of a page: types, counts and faults by path, the path of a new node, and the URLs of
    suggestions and of the list of members."""

    attributes: Types
    properties: Types
    faults: Mapping[Path, Sequence[Fault]]
    new: Path | None
    suggest_url: str
    counts: Mapping[Path, tuple[int, int]] = field(default_factory=dict)
    members_url: str | None = None


def view(node: Node, context: TreeContext, path: Path = ()) -> NodeView:
    """Convert a node and its inner nodes for the page."""
    count, unreadable = context.counts.get(path, (None, 0))
    place = draft.place_of(path)
    return NodeView(
        node=node,
        place=place,
        kind=node.kind,
        form=FORMS_BY_KIND.get(node.kind, _NO_FORM),
        count=count,
        unreadable=unreadable,
        unreadable_url=None if context.members_url is None else f"{context.members_url}?unreadable={place}",
        suggest_url=context.suggest_url,
        faults=[fault.message for fault in context.faults.get(path, ())],
        inner=[view(inner, context, (*path, number)) for number, inner in enumerate(node.inner)],
        attribute=_view_key(node, "", context.attributes),
        product=_view_key(node, "p", context.properties),
        may_have_groups=len(path) + 1 < DEPTH_MAX,
        is_new=context.new == path,
    )


def _view_key(node: Node, prefix: str, types: Types) -> KeyView:
    key, comparison = node.get(f"{prefix}key"), node.get(f"{prefix}cmp")
    if key not in types:
        return KeyView(key=key, type=None, values=(), comparison=comparison, comparisons=[])
    declared, values = types[key]
    offered = list[str](COMPARISONS_BY_TYPE[declared])
    if comparison and comparison not in offered:
        # The type of the key has changed since it was saved; the page shows the old comparison together with the fault.
        offered.insert(0, comparison)
    chosen = [value for value in (node.get(f"{prefix}value"), *node.get_list(f"{prefix}values")) if value]
    return KeyView(
        key=key,
        type=declared.value,
        type_label=TYPE_LABELS[declared],
        values=_choices_of(declared, values, chosen),
        has_list=declared in LISTED_TYPES,
        comparison=comparison,
        comparisons=[(name, COMPARISONS.get(name, name)) for name in offered],
    )


def _choices_of(declared: AttributeType, allowed_values: tuple[str, ...], chosen: Sequence[str]) -> tuple[str, ...]:
    """The values that the form offers. A chosen value keeps its spelling, and stays when the list has lost it."""
    if declared is AttributeType.BOOLEAN:
        return ("true", "false")
    spellings = {fold_text(value): value for value in chosen}
    offered = [spellings.pop(fold_text(value), value) for value in list_distinct(allowed_values)]
    return (*offered, *spellings.values())


CHOICES_MAX: Final = 200
COUNTRY_CHARACTERS: Final = 2
Choices = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class FormChoices(Names):
    """What the user can choose from, and the names of what was chosen, by id."""

    products: KnownProducts

    @property
    def product_names(self) -> Mapping[str, str]:
        """The names of products, with their codes."""
        return {code: f"{it.name} ({code})" for code, it in self.products.by_code.items() if it.name not in {"", code}}

    def was_never_sold(self, code: str) -> bool:
        """Whether no ticket has the product; false while tickets are still being counted."""
        return self.products.is_complete and code not in self.products.by_code

    @property
    def sources(self) -> Mapping[str, str]:
        """The sources of a consent, with their labels."""
        return SOURCES

    def texts_days_max(self, journey: str) -> int:
        """How many days back a condition about texts may go; less if it names a journey."""
        return TEXTS_OF_JOURNEY_DAYS_MAX if journey else TEXTS_DAYS_MAX

    @property
    def kinds(self) -> dict[str, str]:
        """The kinds of conditions that the form offers, with their labels."""
        return {
            form.kind: form.label
            for form in FORMS
            if not form.is_of_ticket and (form.is_hidden_without is None or getattr(self, form.is_hidden_without))
        }


async def find_choices(
    tx: Tx,
    organization_id: UUID,
    territories: Mapping[str, str],
    root: Node,
    *,
    segments: Choices = (),
    journeys: Choices = (),
    also: Condition | None = None,
) -> FormChoices:
    """Find the choices that the form of a tree offers. `territories` has the names of countries in the user's language.
    The campaigns are the newest and those of the tree; the stores and products are those of the tree. `also` is another
    condition whose stores have names."""
    nodes = [node for _, node in draft.walk(root)]
    campaign_ids = CAMPAIGN.decode_all({node.get("campaign") for node in nodes})
    campaigns = await find_campaign_names(tx, organization_id, campaign_ids, newest=CHOICES_MAX)
    stores = {store for node in nodes for store in node.get_list("stores")} | (stores_of(also) if also else set())
    products = {code for node in nodes for code in node.get_list("products")}
    is_country = {code: len(code) == COUNTRY_CHARACTERS and code.isalpha() for code in territories}
    countries = [(code, str(name)) for code, name in territories.items() if is_country[code]]
    return FormChoices(
        products=await find_known_products(tx, organization_id, products),
        stores=await find_store_names(tx, organization_id, stores),
        segments=dict(segments),
        journeys=dict(journeys),
        campaigns={CAMPAIGN.encode(campaign_id): name for campaign_id, name in campaigns},
        countries=dict(sorted(countries, key=lambda country: country[1])),
    )
