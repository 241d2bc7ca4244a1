"""Reads a definition from JSON, in the current format or an older one, and writes its JSON Schema.

Stored definitions are not rewritten, because servers of an older release read them too. Each release reads every format
that was ever stored; `tests/conditions/test_upgrade.py` has an example of each.
"""

import inspect
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec

from regulars.conditions.check import Fault
from regulars.conditions.comparisons import NEGATIVE
from regulars.kit.refusals import Refused

Document = TypeVar("Document", bound=msgspec.Struct)
_PATH: Final = re.compile(r" - at `\$?\.?(?P<path>[^`]*)`$")
# Error messages of msgspec, as patterns, with what users read instead.
_REPHRASED: Final = (
    # For a wrong tag of a union msgspec names types of Python.
    (re.compile(r"got `NoneType`"), "got `null`"),
    (re.compile(r"got `list`"), "got `array`"),
    (re.compile(r"got `dict`"), "got `object`"),
    (re.compile(r"Expected `(\w+)(?: \| null)?`, got `(\w+)`"), r"expected \1, got \2"),
    (re.compile(r"Expected `(\w+) \| (\w+)`, got `(\w+)`"), r"expected \1 or \2, got \3"),
    (re.compile(r"Object missing required field `(\w+)`"), r"\1 is missing"),
    (re.compile(r"Object contains unknown field `([^`]*)`"), r"\1 is not a known field"),
    (re.compile(r"Invalid (?:enum )?value (.*)"), r"\1 is not a known value"),
    (re.compile(r"Expected `str` matching regex .*"), r"its format is not valid"),
)
_TYPE_NAMES: Final = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "nothing",
    "date": "a date such as 2026-11-15",
}


class DefinitionRefused(Refused):
    """A definition cannot be read, saved or run, because of these faults. `consequence` begins the message, such as
    `It cannot run: `."""

    title = "It has a fault"

    def __init__(self, faults: Sequence[Fault], consequence: str = "") -> None:
        self.faults, self.consequence = tuple(faults), consequence
        place = f"{faults[0].place}: " if faults[0].place else ""
        super().__init__(self._describe(place))

    @property
    def sentence(self) -> str:
        return self._describe("")

    def _describe(self, place: str) -> str:
        more = f" ({len(self.faults) - 1} more)" if len(self.faults) > 1 else ""
        return f"{self.consequence}{place}{self.faults[0].message}{more}".removesuffix(".") + "."


def read_document(
    content: bytes, kind: type[Document], upgrade: Callable[[dict[str, Any]], dict[str, Any]], *, bytes_max: int
) -> Document:
    """Return the document in the current format; `upgrade` converts older decoded JSON. Raises `DefinitionRefused`,
    whose message names the part that cannot be parsed."""
    if len(content) > bytes_max:
        raise DefinitionRefused([Fault("", f"A definition has at most {bytes_max >> 10} KB.")])
    try:
        data = msgspec.json.decode(content)
        return msgspec.convert(upgrade(data) if isinstance(data, dict) else data, kind)
    except msgspec.ValidationError as error:
        raise DefinitionRefused([Fault(*describe_decode_error(str(error)))]) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise DefinitionRefused([Fault("", "The definition is not JSON.")]) from None


def schema_of(kind: type[msgspec.Struct], title: str, *, without: Collection[type[msgspec.Struct]] = ()) -> bytes:
    """The JSON Schema of a definition; `without` are condition types that it does not allow."""
    schema = msgspec.json.schema(kind)
    removed = {f"#/$defs/{condition_type.__name__}" for condition_type in without}
    for condition_type in without:
        schema["$defs"].pop(condition_type.__name__)
    for part in schema["$defs"].values():
        items = part.get("properties", {}).get("of", {}).get("items", {})
        if "anyOf" in items:
            items["anyOf"] = [option for option in items["anyOf"] if option["$ref"] not in removed]
            mapping = items["discriminator"]["mapping"]
            items["discriminator"]["mapping"] = {tag: ref for tag, ref in mapping.items() if ref not in removed}
        if "description" in part:
            # Before Python 3.13 a docstring still has its indentation.
            part["description"] = inspect.cleandoc(part["description"])
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **schema}
    return msgspec.json.format(msgspec.json.encode(schema), indent=2) + b"\n"


def describe_decode_error(message: str) -> tuple[str, str]:
    """Split an error of msgspec into the path in the document, empty if there is none, and a message for the user."""
    path_match = _PATH.search(message)
    text = message[: path_match.start()] if path_match else message
    for pattern, replacement in _REPHRASED:
        text = pattern.sub(replacement, text)
    for name, replacement in _TYPE_NAMES.items():
        text = re.sub(rf"\b{name}\b", replacement, text)
    return path_match["path"] if path_match else "", text.replace("`", "'") + "."


_BOOLEANS: Final = {"is_true": "true", "is_false": "false"}
# A number of days from 1 to 3650, which older journeys stored as text.
_DAYS: Final = re.compile(r"0{0,3}[1-9][0-9]{0,2}|[12][0-9]{3}|3[0-5][0-9]{2}|36[0-4][0-9]|3650")
_COMPARISON_FIELDS: Final = ("comparison", "value", "values")
_GROUPS: Final = frozenset({"all", "any", "none"})


def upgrade(data: Any, *, of_journey: bool = False) -> Any:
    """Convert a condition, as JSON data, to the current format; the decoder refuses anything that is not a condition.

    In journeys, a negative comparison without `without_value` does not match customers without a value.
    """
    if not isinstance(data, dict):
        return data
    kind = data.get("type")
    if isinstance(kind, str) and kind in _GROUPS:
        inner = data.get("of")
        if not isinstance(inner, list):
            return data
        return {**data, "of": [upgrade(condition, of_journey=of_journey) for condition in inner]}
    upgraded = data
    if isinstance(kind, str) and kind in _RENAMED:
        upgraded = {**data, **_RENAMED[kind]}
    elif isinstance(kind, str) and kind in _UPGRADES:
        upgraded = _UPGRADES[kind](data)
    return _upgrade_comparisons(_upgrade_days(upgraded), of_journey=of_journey)


def _upgrade_purchases(data: Mapping[str, Any]) -> dict[str, Any]:
    """An older condition of journeys: a minimum number of purchases in the last days, or none."""
    other_fields = {name: value for name, value in data.items() if name not in {"in_days", "at_least", "none"}}
    bound = {"none": True} if data.get("none") is True else {"at_least": data.get("at_least", 1)}
    return {**other_fields, **bound, "type": "bought", "window": {"last_days": data.get("in_days")}}


def _upgrade_product(data: Mapping[str, Any]) -> dict[str, Any]:
    """An older condition of journeys: the comparison was a sibling of the property. A property without a comparison was
    a fault, and still is."""
    comparison = {name: data[name] for name in _COMPARISON_FIELDS if data.get(name) is not None}
    other_fields = {name: value for name, value in data.items() if name not in _COMPARISON_FIELDS and value is not None}
    key = other_fields.get("property")
    return (
        {**other_fields, "property": {"key": key, "comparison": "between", **comparison}}
        if isinstance(key, str)
        else other_fields
    )


# The fields that replace those of a condition whose type has another name now.
_RENAMED: Final = {
    "tickets": {"type": "bought"},
    "articles": {"type": "bought", "count": "articles"},
    "subscribed": {"type": "consent", "state": "may_be_texted"},
}
_UPGRADES: Final = {"purchases": _upgrade_purchases, "product": _upgrade_product}


def _upgrade_days(data: Mapping[str, Any]) -> dict[str, Any]:
    """Older definitions write "only today" as the last 0 days; the current format writes 1 day."""
    changed = dict(data)
    for name, inner in data.items():
        if name in {"window", "when", "since", "property"} and isinstance(inner, dict):
            changed[name] = _upgrade_days(inner)
        elif name in {"days", "last_days"} and inner == 0 and not isinstance(inner, bool):
            changed[name] = 1
    return changed


def _upgrade_comparisons(data: dict[str, Any], *, of_journey: bool) -> dict[str, Any]:
    if isinstance(data.get("property"), dict):
        data = {**data, "property": _upgrade_comparison(data["property"], of_journey=of_journey)}
    return _upgrade_comparison(data, of_journey=of_journey) if data.get("type") == "attribute" else data


def _upgrade_comparison(data: dict[str, Any], *, of_journey: bool) -> dict[str, Any]:
    comparison = data.get("comparison")
    if not isinstance(comparison, str):
        return data
    if comparison in _BOOLEANS:
        return {**data, "comparison": "is", "value": _BOOLEANS[comparison]}
    if of_journey and comparison == "in_last_days" and "days" not in data and "value" in data:
        other_fields = {name: value for name, value in data.items() if name != "value"}
        # Any other value was a fault; without `days` it still is.
        return {**other_fields, "days": int(data["value"])} if _DAYS.fullmatch(str(data["value"])) else other_fields
    if of_journey and comparison in NEGATIVE and "without_value" not in data:
        return {**data, "without_value": False}
    return data
