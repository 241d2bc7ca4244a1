"""A condition tree while it is edited: the content of a form, complete or not. A node is a condition or a group.

The name of a form field begins with the place of its node, which is the path as text: `r.0.1~key` is the key of the
second condition in the first group. A button sends the whole tree, and the response has the changed tree.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Final

from regulars.conditions.field_suggestions import Source
from regulars.conditions.forms.catalog import FORMS_BY_KIND
from regulars.conditions.forms.node import GROUPS, MORE, Node
from regulars.conditions.forms.parts import PickedList
from regulars.conditions.tree import CONDITIONS_MAX, DEPTH_MAX, Path
from regulars.kit.refusals import TooLarge

ROOT: Final = "r"
# The lists whose values the user picks from a select, and which the server appends at once.
_SELECTED: Final = (
    "sources",
    *(part.name for form in FORMS_BY_KIND.values() for part in form.parts if isinstance(part, PickedList)),
)
# The lists whose values the user types, with what the field suggests (`forms/typed.py` appends them). Fields of product
# properties have the prefix `p`: `pvalues` are the values of a property, `pkey` is its key.
TYPED: Final = {
    "values": Source.ATTRIBUTE_VALUES,
    "pvalues": Source.PROPERTY_VALUES,
    "stores": Source.STORES,
    "products": Source.PRODUCTS,
}
# The largest number of nodes of a tree that can be saved: the root, and for each condition the deepest nesting of
# groups.
NODES_MAX: Final = CONDITIONS_MAX * DEPTH_MAX + 1
# Above the limit of other forms, since a form with fifty conditions has so many fields.
FIELDS_MAX: Final = 3_000
_NUMBER: Final = re.compile(r"[0-9]{1,4}")


def read_tree(form: Mapping[str, list[str]]) -> Node:
    """Read the tree from the form; other fields are ignored."""
    kinds: dict[str, str] = {}
    fields: dict[str, dict[str, list[str]]] = {}
    for name, values in form.items():
        place, separator, field_name = name.partition("~")
        if not separator:
            continue
        if field_name == "kind":
            kinds[place] = values[0]
        else:
            fields.setdefault(place, {})[field_name] = values
    # The number is checked first, because sorting, checking and rendering take quadratic time.
    if len(kinds) > NODES_MAX:
        raise TooLarge(
            f"There are at most {CONDITIONS_MAX} conditions, nested {DEPTH_MAX} deep; this form has {len(kinds)}"
            " conditions and groups. Nothing was changed."
        )
    return _read_node(ROOT, kinds, fields, depth=1) or Node("all")


def _read_node(
    place: str, kinds: Mapping[str, str], fields: Mapping[str, dict[str, list[str]]], *, depth: int
) -> Node | None:
    kind = kinds.get(place, "")
    if kind in FORMS_BY_KIND and place != ROOT:
        return _append_selected(Node(kind, dict(fields.get(place, {}))))
    if kind not in GROUPS or depth > DEPTH_MAX:
        return None
    prefix = f"{place}."
    inner_places = [inner for inner in kinds if inner.startswith(prefix) and _NUMBER.fullmatch(inner, len(prefix))]
    node = Node(kind, dict(fields.get(place, {})))
    for inner_place in sorted(inner_places, key=lambda inner: int(inner.removeprefix(prefix))):
        inner_node = _read_node(inner_place, kinds, fields, depth=depth + 1)
        if inner_node is not None:
            node.inner.append(inner_node)
    return node


def _append_selected(node: Node) -> Node:
    for name in _SELECTED:
        node.append(name, *node.fields.pop(f"{MORE}{name}", ()))
    return node


def walk(node: Node, path: Path = ()) -> Iterator[tuple[Path, Node]]:
    yield path, node
    for number, inner in enumerate(node.inner):
        yield from walk(inner, (*path, number))


def number_nodes(root: Node) -> None:
    """Give each node without a number a new one, so that the page recognizes a node after its place has changed."""
    used: set[str] = set()
    for _, node in walk(root):
        current = node.get("number")
        if current in used or not _NUMBER.fullmatch(current):
            node.set("number")
        used.add(node.get("number"))
    free = (text for number in count(1) if (text := str(number)) not in used)
    for _, node in walk(root):
        if not node.get("number"):
            node.set("number", next(free))


def place_of(path: Path) -> str:
    """The path as text: `r.0.1`."""
    return ".".join([ROOT, *(str(number) for number in path)])


def path_of(place: str) -> Path | None:
    """The path from its text `r.0.1`; None if it is invalid."""
    first, *numbers = place.split(".")
    is_valid = first == ROOT and all(_NUMBER.fullmatch(number) for number in numbers)
    return tuple(int(number) for number in numbers) if is_valid else None


def apply_action(root: Node, act: str) -> Path | None:
    """Apply the action of a button: add a condition or a group, remove a node, pick a value that was found, or drop a
    picked one. Return the path of the node that gets the focus.

    `act` is the value of the button: a verb, the place of a node, and for some verbs an argument.
    """
    verb, _, rest = act.partition(" ")
    place, _, argument = rest.partition(" ")
    path = path_of(place)
    node = None if path is None else _find(root, path)
    if node is None or path is None:
        return None
    match verb:
        case "add" if node.is_group and sum(not other.is_group for _, other in walk(root)) < CONDITIONS_MAX:
            kind = argument if argument in FORMS_BY_KIND else "attribute"
            defaults = {name: [value] for name, value in FORMS_BY_KIND[kind].defaults.items()}
            node.inner.append(Node(kind, defaults))
            return (*path, len(node.inner) - 1)
        case "group" if node.is_group and len(path) + 1 < DEPTH_MAX and sum(1 for _ in walk(root)) < NODES_MAX:
            node.inner.append(Node("any"))
            return (*path, len(node.inner) - 1)
        case "remove" if path:
            parent = _find(root, path[:-1])
            if parent is not None:
                del parent.inner[path[-1]]
            return path[:-1]
        case "pick":
            name, _, value = argument.partition(" ")
            if name in TYPED:
                node.append(name, value)
                node.fields.pop(f"{MORE}{name}", None)
            return path
        case "drop":
            name, _, value = argument.partition(" ")
            node.set(name, *[picked for picked in node.get_list(name) if picked != value])
            return path
        case _:
            return None


def _find(node: Node, path: Path) -> Node | None:
    for number in path:
        if number >= len(node.inner):
            return None
        node = node.inner[number]
    return node
