"""A condition or group while it is edited, with the values of its form fields."""

from dataclasses import dataclass, field
from typing import Final

from regulars.conditions.field_suggestions import Suggestions

GROUPS: Final = ("all", "any", "none")
# Prefix of the field in which the user picks a value for a list.
MORE: Final = "more_"
# Prefix of the hidden field for a saved value that the visible field cannot show exactly.
SAVED: Final = "saved_"
_VALUES_MAX: Final = 200


@dataclass(slots=True)
class Node:
    """A condition or group while it is edited, with the values of its form fields. `searches` has what was found for a
    typed text that is no value yet, by its list; `focus` names the field that gets the focus."""

    kind: str
    fields: dict[str, list[str]] = field(default_factory=dict)
    inner: list["Node"] = field(default_factory=list)
    searches: dict[str, Suggestions] = field(default_factory=dict)
    focus: str = ""

    @property
    def is_group(self) -> bool:
        return self.kind in GROUPS

    def get(self, name: str, default: str = "") -> str:
        values = self.fields.get(name)
        return values[0].strip() if values and values[0].strip() else default

    def get_list(self, name: str) -> list[str]:
        """The distinct picked values; they are not stripped, since a value may begin or end with a space. A
        stored value may be empty."""
        return list(dict.fromkeys(self.fields.get(name, ())))[:_VALUES_MAX]

    def get_exact(self, name: str) -> str:
        """The typed value without outer spaces, unless it is still the saved value, which may have them."""
        saved = (self.fields.get(f"{SAVED}{name}") or [""])[0]
        return saved if saved and saved.strip() == self.get(name) else self.get(name)

    def set(self, name: str, *values: str) -> None:
        self.fields[name] = list(values)

    def append(self, name: str, *values: str) -> None:
        """Add picked values to a list."""
        picked = [value.strip() for value in values if value.strip()]
        if picked:
            self.set(name, *self.get_list(name), *picked)
