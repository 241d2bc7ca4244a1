"""The form of a condition as data: its parts in the order in which the page shows them.

A part has the name of the field of the condition (`field`) and of the form (`name`). `forms/fields.py` reads and
writes the fields of each part, and a macro of `templates/fields.html` shows it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final, Literal

CURRENCIES: Final = tuple((code, code) for code in ("EUR", "GBP", "USD", "CHF"))
# What the user chooses from: the names of fields of `FormChoices`.
Offered = Literal["campaigns", "countries", "segments"]
Unit = Literal["times", "days", "articles", "cents"]


@dataclass(frozen=True, slots=True)
class Label:
    """The label of the form, or another text."""

    text: str = ""
    is_quiet: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class YesNo:
    """A select of two sentences."""

    field: str
    name: str
    yes: str
    no: str
    label: str
    has_focus: bool = False
    default: ClassVar = "yes"

    @property
    def options(self) -> tuple[tuple[str, str], ...]:
        return (("yes", self.yes), ("no", self.no))


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    field: str
    name: str
    options: tuple[tuple[str, str], ...]
    default: str
    label: str
    has_focus: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectChoice:
    """A select of objects by their names, such as campaigns; the form is incomplete until one is chosen."""

    field: str
    name: str
    offered: Offered
    noun: str

    @property
    def label(self) -> str:
        return self.noun.capitalize()


@dataclass(frozen=True, slots=True, kw_only=True)
class PickedList:
    """Values that the user picks from a select; the form is incomplete without one. Either `offered` or `options` has
    the values."""

    field: str
    name: str
    noun: str
    offered: Offered | None = None
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class StoreList:
    """Stores that the user finds by typing; the form is incomplete without one."""

    field: str
    name: ClassVar = "stores"
    noun: ClassVar = "store"


@dataclass(frozen=True, slots=True)
class Limits:
    """At least, at most, between, and for some also none at all (`none`, a word)."""

    unit: Unit
    unit_label: str = ""
    none: str = ""

    @property
    def suffix(self) -> str:
        return "_cents" if self.unit == "cents" else ""


@dataclass(frozen=True, slots=True)
class SalesWindow:
    """The days whose sales count."""


@dataclass(frozen=True, slots=True)
class SalesFilter:
    """The products, the product property and the stores of sales."""


@dataclass(frozen=True, slots=True)
class Day:
    """When something was. `never` also asks whether customers to whom it never happened match."""

    field: str = "when"
    never: bool = False


@dataclass(frozen=True, slots=True)
class AttributeKey:
    """The key of an attribute, which the form suggests."""


@dataclass(frozen=True, slots=True)
class AttributeComparison:
    """The comparison of the attribute, as its declared type allows."""


@dataclass(frozen=True, slots=True)
class TicketProduct:
    """The products of a ticket, a property of them, or both."""


@dataclass(frozen=True, slots=True)
class ConsentDetails:
    """Day, sources and stores of a consent or withdrawal; which of them there are depends on the chosen state."""

    states_with_details: ClassVar = ("may_be_texted", "withdrawn")


@dataclass(frozen=True, slots=True)
class TextDetails:
    """In which days a text left, and of which journey; the largest number of days depends on the journey."""


Part = (
    Label
    | YesNo
    | Choice
    | ObjectChoice
    | PickedList
    | StoreList
    | Limits
    | SalesWindow
    | SalesFilter
    | Day
    | AttributeKey
    | AttributeComparison
    | TicketProduct
    | ConsentDetails
    | TextDetails
)


# The currency of an amount.
CURRENCY: Final = (
    Choice(field="currency", name="currency", options=CURRENCIES, default="EUR", label="Currency"),
    Label("Other currencies do not count.", is_quiet=True),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How the builder offers a kind of condition: `kind` names it in the form, `label` in its menu."""

    kind: str
    label: str
    parts: tuple[Part, ...]
    icon: str = "ticket"
    # Whether it has a button of its own beside the menu.
    is_quick: bool = False
    # Whether it is about the ticket that triggered a journey.
    is_of_ticket: bool = False
    # Whether it is hidden while there is nothing to choose from.
    is_hidden_without: Offered | None = None
    # The values of a new condition, so that it is complete at once.
    defaults: Mapping[str, str] = field(default_factory=dict)
    # The fields of the condition that the user does not choose, among them its type.
    fixed: Mapping[str, str] = field(default_factory=dict)
