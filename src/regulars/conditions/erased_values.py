"""Removes attribute values of erased people from the conditions of stored definitions, if no other customer has the
value. So each condition stays true for the same customers."""

from collections.abc import Collection
from typing import Any, Final, LiteralString, NamedTuple
from uuid import UUID

import msgspec

from regulars.catalog.entries import find_types
from regulars.catalog.model import AttributeType, Catalog
from regulars.kit.columns import fill
from regulars.kit.db import Tx
from regulars.profiles.find import find_values_in_use
from regulars.work.personal import ErasedPeople

ERASED_VALUE: Final = "[erased]"
# How many values one erasure replaces, because each value that no other customer has costs a scan of all profiles. Real
# segments contain fewer.
VALUES_MAX: Final = 10

# The key and the value of an attribute.
Attribute = tuple[str, str]


# The SQL condition that the JSON of a definition contains one of the values `quoted`.
_CONTAINS_VALUE: Final = """
    EXISTS (SELECT 1 FROM unnest(%(quoted)s::text[]) AS it (value) WHERE position(it.value IN definition::text) > 0)
    """


class DefinitionTable(NamedTuple):
    """A table with definitions: `find` returns each with its key, and `update` gets the changed one, the organization
    and the key."""

    find: LiteralString
    update: LiteralString


async def erase_values(
    tx: Tx, organization_id: UUID, people: ErasedPeople, tables: Collection[DefinitionTable]
) -> None:
    """Replace values that only erased people had, in all definitions. Otherwise stored versions never change."""
    quoted = sorted({msgspec.json.encode(value).decode() for _, value in people.attributes if value})
    parameters = {"organization_id": organization_id, "quoted": quoted}
    found = [
        (table, row)
        for table in tables
        for row in await tx.fetch(fill(table.find, contains_value=_CONTAINS_VALUE), parameters)
    ]
    erased = await _find_erased(tx, organization_id, people, [definition for _, (definition, *_) in found])
    for table, (definition, *key) in found if erased else ():
        changed = msgspec.json.encode(_replace_values(msgspec.json.decode(definition), erased)).decode()
        await tx.execute(table.update, (changed, organization_id, *key))


async def _find_erased(
    tx: Tx, organization_id: UUID, people: ErasedPeople, definitions: Collection[str]
) -> set[Attribute]:
    """The attribute values of the people that a definition contains and that no other customer has."""
    used: set[Attribute] = set()
    for definition in definitions:
        _collect_attributes(msgspec.json.decode(definition), used)
    candidates = sorted(used & set(people.attributes))[:VALUES_MAX]
    if not candidates:
        return set()
    types = await find_types(tx, organization_id, Catalog.ATTRIBUTES, {key for key, _ in candidates})
    texts = [
        attribute
        for attribute in candidates
        if attribute[0] not in types or types[attribute[0]][0] is AttributeType.TEXT
    ]
    return set(texts) - await find_values_in_use(tx, organization_id, texts)


def _collect_attributes(part: Any, attributes: set[Attribute]) -> None:
    """Add all attribute values of a part of the JSON to `attributes`."""
    if isinstance(part, dict):
        if part.get("type") == "attribute":
            attributes.update((part["key"], value) for value in [part.get("value"), *part.get("values", ())] if value)
        for inner in part.values():
            _collect_attributes(inner, attributes)
    elif isinstance(part, list):
        for inner in part:
            _collect_attributes(inner, attributes)


def _replace_values(part: Any, erased: Collection[Attribute]) -> Any:
    if isinstance(part, list):
        return [_replace_values(inner, erased) for inner in part]
    if not isinstance(part, dict):
        return part
    changed = {name: _replace_values(inner, erased) for name, inner in part.items()}
    if part.get("type") == "attribute":
        key = part["key"]
        if (key, part.get("value")) in erased:
            changed["value"] = ERASED_VALUE
        if any((key, value) in erased for value in part.get("values", ())):
            changed["values"] = [ERASED_VALUE if (key, value) in erased else value for value in part["values"]]
    return changed
