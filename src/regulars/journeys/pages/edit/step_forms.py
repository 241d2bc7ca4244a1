"""Converts between a step of a journey and the fields of its form in the builder."""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from regulars.conditions.tree import Consent
from regulars.journeys import definition as steps
from regulars.journeys.labels import kind_of
from regulars.texts.text_form import fill_text_form, read_text_form
from regulars.web.form import FormState

DAYS_MAX: Final = 365
HOURS_MAX: Final = 8_760
MINUTES_MAX: Final = 525_600
KEY_CHARACTERS_MAX: Final = 128
VALUE_CHARACTERS_MAX: Final = 2_048
# In the order of the menu: kind, label, help.
CHOICES: Final = (
    ("send_text", "Send a text", "Send a personal text to customers who may be texted."),
    ("wait", "Wait", "Wait for days, hours or minutes."),
    ("wait_until", "Wait until a time", "Wait for a time of day, on all or some weekdays."),
    ("wait_for_purchase", "Wait for a purchase", "Take one path for customers who buy in time, another for the rest."),
    ("branch", "Branch", "Take one of two paths, by conditions on the customer or the ticket."),
    ("split", "Split", "Divide customers at random between two paths."),
    ("set_attribute", "Set an attribute", "Save a value with the customer."),
    ("exit", "Exit", "The customer leaves the journey here."),
)
STEP_KINDS: Final = tuple(kind for kind, _, _ in CHOICES)
DEFAULTS: Final[Mapping[str, Mapping[str, str]]] = {
    "wait": {"days": "1"},
    "wait_until": {"time": "10:00"},
    "wait_for_purchase": {"days": "30"},
    "split": {"percent": "50"},
}


def fill_form(step: steps.Step) -> FormState:
    """The form of an existing step."""
    values: dict[str, str] = {"kind": kind_of(step)}
    match step:
        case steps.Wait():
            values |= {"days": _format(step.days), "hours": _format(step.hours), "minutes": _format(step.minutes)}
        case steps.WaitForPurchase():
            values |= {"days": _format(step.days), "hours": _format(step.hours)}
        case steps.WaitUntil(time=time, weekdays=weekdays):
            values |= {"time": time} | dict.fromkeys(weekdays, "on")
        case steps.Split(percent=percent, holdout=holdout):
            values |= {"percent": str(percent), "holdout": "on" if holdout else ""}
        case steps.SendText(text=text, personal_links=has_personal_links):
            values |= fill_text_form(text) | ({"personal_links": "on"} if has_personal_links else {})
        case steps.SetAttribute(key=key, value=value):
            values |= {"key": key, "value": value}
        case _:
            pass
    return FormState(values)


def new_form(kind: str) -> FormState:
    return FormState({"kind": kind, **DEFAULTS.get(kind, {})})


def read_step(form: FormState, kind: str, *, existing: steps.Step | None = None) -> steps.Step | None:
    """Read a step from the form; None if the form has an error. The id, paths and condition of `existing` stay."""
    step = _read_fields(form, kind)
    if form.is_refused or step is None:
        return None
    if existing is None or kind_of(existing) != kind:
        return step
    unchanged: dict[str, object] = {"id": existing.id}
    if isinstance(existing, steps.Branch | steps.Split | steps.WaitForPurchase):
        unchanged |= {"then": existing.then, "otherwise": existing.otherwise}
    if isinstance(existing, steps.Branch):
        unchanged["condition"] = existing.condition
    return replace(step, **unchanged)


def _read_fields(form: FormState, kind: str) -> steps.Step | None:
    match kind:
        case "wait":
            minutes = _number(form, "minutes", MINUTES_MAX)
            return steps.Wait(
                days=_number(form, "days", DAYS_MAX), hours=_number(form, "hours", HOURS_MAX), minutes=minutes
            )
        case "wait_until":
            return steps.WaitUntil(time=form.clock("time"), weekdays=_read_weekdays(form))
        case "wait_for_purchase":
            return steps.WaitForPurchase(days=_number(form, "days", DAYS_MAX), hours=_number(form, "hours", HOURS_MAX))
        case "branch":
            # The form has no condition: a new branch begins with this one, an existing branch keeps its own.
            return steps.Branch(condition=Consent(state="may_be_texted"))
        case "split":
            percent = min(max(form.integer("percent", minimum=1, maximum=99), 1), 99)
            return steps.Split(percent=percent, holdout=form.is_checked("holdout"))
        case "send_text":
            content = read_text_form(form.values, form.refuse)
            has_personal_links = form.is_checked("personal_links")
            return None if form.is_refused else steps.SendText(text=content, personal_links=has_personal_links)
        case "set_attribute":
            key = form.text("key", characters_max=KEY_CHARACTERS_MAX)
            value = form.text("value", required=False, characters_max=VALUE_CHARACTERS_MAX)
            # With an empty key the form is refused, and the step is not used.
            return steps.SetAttribute(key=key or "-", value=value)
        case "exit":
            return steps.Exit()
        case _:
            form.refuse("kind", "Choose a kind of step.")
            return None


def _number(form: FormState, name: str, maximum: int) -> int:
    """The number in a field; an empty field means 0."""
    if not form.value(name).strip():
        return 0
    return min(max(form.integer(name, minimum=0, maximum=maximum), 0), maximum)


def _read_weekdays(form: FormState) -> tuple[steps.Weekday, ...]:
    checked: Sequence[steps.Weekday] = [day for day in steps.WEEKDAYS if form.is_checked(day)]
    return () if len(checked) == len(steps.WEEKDAYS) else tuple(checked)


def _format(number: int) -> str:
    return str(number) if number else ""
