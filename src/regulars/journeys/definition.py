"""The definition of a journey. `docs/journeys.md` describes it; its JSON Schema is generated from these types."""

from datetime import timedelta
from typing import Annotated, Any, Final, Literal, get_args

import msgspec
from msgspec import Meta

from regulars.conditions.check import Fault
from regulars.conditions.documents import read_document, schema_of, upgrade
from regulars.conditions.stored_documents import read_stored_document
from regulars.conditions.tree import Condition
from regulars.kit.wire import Name
from regulars.profiles.model import AttributeKey
from regulars.texts.template import TextContent

StepId = Annotated[str, Meta(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_.-]+$")]
Days = Annotated[int, Meta(ge=1, le=3_650)]
Clock = Annotated[str, Meta(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$", description="Local time, such as 10:00.")]
Weekday = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
WEEKDAYS: tuple[Weekday, ...] = get_args(Weekday)
FILE_BYTES_MAX: Final = 256 * 1024
# The fields that a definition must have, with values for those that a stored one lacks.
_REQUIRED: Final[dict[str, Any]] = {"name": "Unnamed journey", "trigger": "purchase", "steps": []}


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    pass


class _Step(_Strict, frozen=True, tag_field="do", kw_only=True):
    id: StepId | None = None


class Wait(_Step, frozen=True, tag="wait", kw_only=True):
    """Wait for a duration."""

    minutes: Annotated[int, Meta(ge=0, le=525_600)] = 0
    hours: Annotated[int, Meta(ge=0, le=8_760)] = 0
    days: Annotated[int, Meta(ge=0, le=365)] = 0

    @property
    def duration(self) -> timedelta:
        return timedelta(days=self.days, hours=self.hours, minutes=self.minutes)


class WaitUntil(_Step, frozen=True, tag="wait_until", kw_only=True):
    """Until the next such local time, on one of these weekdays where there are any."""

    time: Clock
    weekdays: tuple[Weekday, ...] = ()


class WaitForPurchase(_Step, frozen=True, tag="wait_for_purchase", kw_only=True):
    """Until the customer buys, or the time is over."""

    hours: Annotated[int, Meta(ge=0, le=8_760)] = 0
    days: Annotated[int, Meta(ge=0, le=365)] = 0
    then: tuple["Step", ...] = ()
    otherwise: tuple["Step", ...] = msgspec.field(name="else", default=())

    @property
    def duration(self) -> timedelta:
        return timedelta(days=self.days, hours=self.hours)


class Branch(_Step, frozen=True, tag="branch", kw_only=True):
    condition: Condition = msgspec.field(name="if")
    then: tuple["Step", ...] = ()
    otherwise: tuple["Step", ...] = msgspec.field(name="else", default=())


class Split(_Step, frozen=True, tag="split", kw_only=True):
    """Random, but always the same branch for the same customer.

    As a holdout it measures what the texts of `then` bring: the customers of `else` are the ones to compare with.
    """

    percent: Annotated[int, Meta(ge=1, le=99)]
    holdout: bool = False
    then: tuple["Step", ...] = ()
    otherwise: tuple["Step", ...] = msgspec.field(name="else", default=())


class SendText(_Step, frozen=True, tag="send_text", kw_only=True):
    """A text, or one in several languages."""

    text: TextContent
    # Whether each customer gets separate links, so that a click identifies the customer; otherwise all customers get
    # the same links.
    personal_links: bool = False


class SetAttribute(_Step, frozen=True, tag="set_attribute", kw_only=True):
    key: AttributeKey
    value: Annotated[str, Meta(max_length=2_048)]


class Exit(_Step, frozen=True, tag="exit", kw_only=True):
    pass


Step = Wait | WaitUntil | WaitForPurchase | Branch | Split | SendText | SetAttribute | Exit
Trigger = Literal["opt_in", "purchase", "return"]
ExitOn = Literal["purchase", "return"]


class Reentry(_Strict, frozen=True):
    """Whether a customer can enter again: always, never, or a number of days after the last entry."""

    policy: Literal["always", "never", "after_days"] = "always"
    days: Days | None = None


class Definition(_Strict, frozen=True, kw_only=True):
    name: Name
    trigger: Trigger
    filter: Condition | None = None
    reentry: Reentry = Reentry()
    # A withdrawal of consent always ends a run.
    exit_on: tuple[ExitOn, ...] = ()
    steps: tuple[Step, ...]


def read_definition(content: bytes) -> Definition:
    """Raises `DefinitionRefused`, whose message names the faulty field."""
    return read_document(content, Definition, _upgrade, bytes_max=FILE_BYTES_MAX)


def read_stored_definition(document: str) -> tuple[Definition, list[Fault]]:
    """Return the definition without the parts that are not valid, so that it can be shown and repaired, and a fault for
    each of them, with which the journey cannot be activated. Runs follow a definition of `read_definition`."""
    return read_stored_document(document, Definition, _upgrade, required=_REQUIRED, bytes_max=FILE_BYTES_MAX)


def _upgrade(data: dict[str, Any]) -> dict[str, Any]:
    """Convert conditions in an old format to the current format, in the filter and in every branch."""
    upgraded = {**data, "steps": _upgrade_steps(data["steps"])} if "steps" in data else data
    return {**upgraded, "filter": upgrade(data["filter"], of_journey=True)} if "filter" in data else upgraded


def _upgrade_steps(steps: Any) -> Any:
    return [_upgrade_step(step) for step in steps] if isinstance(steps, list) else steps


def _upgrade_step(step: Any) -> Any:
    if not isinstance(step, dict):
        return step
    branches = {name: _upgrade_steps(step[name]) for name in ("then", "else") if name in step}
    condition = {"if": upgrade(step["if"], of_journey=True)} if "if" in step else {}
    return {**step, **branches, **condition}


def write_definition(definition: Definition) -> bytes:
    """Raises `DefinitionRefused` if `read_definition` would refuse what is written."""
    content = msgspec.json.encode(definition)
    read_definition(content)
    return content


def schema() -> bytes:
    return schema_of(Definition, "A journey of Regulars")
