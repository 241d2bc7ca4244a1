"""Describes the steps, triggers and conditions of journeys in English, for pages and for the command line."""

from collections.abc import Mapping
from typing import Final, NamedTuple
from uuid import UUID

from babel import Locale
from msgspec.structs import replace

from regulars.conditions.campaign_names import find_campaign_names
from regulars.conditions.labels import Labels
from regulars.conditions.tree import Condition, Group, OfAttribute
from regulars.journeys import definition as steps
from regulars.journeys.program import References
from regulars.kit.db import Tx
from regulars.kit.ids import CAMPAIGN, SEGMENT
from regulars.segments.saved.manage import find_names
from regulars.texts.labels import is_language, label_value, name_language
from regulars.texts.template_labels import describe_template

TRIGGERS: Final = {
    "purchase": "A purchase is recorded",
    "return": "A return is recorded",
    "opt_in": "A customer opts in to texts",
}
# The names of languages by code.
LANGUAGES: Final[Mapping[str, str]] = Locale("en").languages
GROUP_LABELS: Final = {"all": "All of these hold", "any": "Any of these holds", "none": "None of these holds"}
# The label and the icon of each kind of step.
KINDS: Final = {
    "wait": ("Wait", "clock"),
    "wait_until": ("Wait until", "clock"),
    "wait_for_purchase": ("Wait for a purchase", "ticket"),
    "branch": ("Branch", "branch"),
    "split": ("Split", "branch"),
    "send_text": ("Send a text", "message"),
    "set_attribute": ("Set attribute", "tag"),
    "exit": ("Exit", "out"),
}


class StepSummary(NamedTuple):
    """The text and icon on the card of a step."""

    kind: str
    name: str
    detail: str
    icon: str


def kind_of(step: steps.Step) -> str:
    return str(step.__struct_config__.tag)


def describe_step(step: steps.Step) -> StepSummary:
    kind, icon = KINDS[kind_of(step)]
    name, detail = _describe(step)
    return StepSummary(kind, name, detail, icon)


def describe_paths(step: steps.Step) -> tuple[str, str]:
    """The labels of the two paths after a step that divides the flow."""
    match step:
        case steps.WaitForPurchase():
            return "Bought", "Did not buy"
        case steps.Split(percent=percent, holdout=holdout):
            return f"{percent}%", f"{100 - percent}%{' held out' if holdout else ''}"
        case _:
            return "Yes", "No"


def describe_reentry(definition: steps.Definition) -> str:
    match definition.reentry.policy:
        case "never":
            return "Each customer enters once"
        case "after_days":
            return f"Customers can enter again after {_count(definition.reentry.days or 0, 'day')}"
        case _:
            return "Customers can enter again, unless they are still in the journey"


def describe_exits(definition: steps.Definition) -> str:
    exits = ["an opt-out", *(f"a {it}" for it in definition.exit_on)]
    return f"Customers leave after {', '.join(exits[:-1])}{' or ' if exits[:-1] else ''}{exits[-1]}"


def describe_condition(condition: Condition) -> str:
    """The condition in one line, with groups in brackets and languages by name."""
    return Labels().line(_name_languages(condition))


def _name_languages(condition: Condition) -> Condition:
    """The condition for its label: in comparisons of a language, codes such as `de` become names."""
    if isinstance(condition, Group):
        return replace(condition, of=tuple(map(_name_languages, condition.of)))
    if not isinstance(condition, OfAttribute) or not is_language(condition.key):
        return condition
    return replace(
        condition,
        value=None if condition.value is None else name_language(condition.value, LANGUAGES),
        values=tuple(name_language(value, LANGUAGES) for value in condition.values),
    )


def describe_duration(*, days: int = 0, hours: int = 0, minutes: int = 0) -> str:
    units = {"day": days, "hour": hours, "minute": minutes}
    return " and ".join(_count(number, noun) for noun, number in units.items() if number) or "no time"


def _describe(step: steps.Step) -> tuple[str, str]:
    match step:
        case steps.Wait():
            return describe_duration(days=step.days, hours=step.hours, minutes=step.minutes), ""
        case steps.WaitUntil(time=time, weekdays=weekdays):
            days = f" on {' or '.join(day.capitalize() for day in weekdays)}" if weekdays else ""
            return (
                f"{time} local time{days}",
                "in the time zone of the phone number; if that is unclear, of the store or the organization",
            )
        case steps.WaitForPurchase():
            length = describe_duration(days=step.days, hours=step.hours)
            return f"Buys within {length}", f"customers who do not buy continue after {length}"
        case steps.Branch(condition=condition):
            return f"{_capitalize(describe_condition(condition))}?", "checked when the customer reaches this step"
        case steps.Split(percent=percent, holdout=holdout):
            why = "the others get no text, so that the effect can be measured; " if holdout else ""
            return f"{percent}% of the customers", f"{why}chosen at random; a customer always takes the same path"
        case steps.SendText(text=text, personal_links=has_personal_links):
            links = "each customer gets links of their own; " if has_personal_links else ""
            checks = f"{links}consent, sending hours and the frequency cap are checked when it is sent"
            if isinstance(text, str):
                return f"“{describe_template(text)}”", checks
            values = ", ".join(label_value(text.attribute, value, LANGUAGES) for value in text.texts)
            return f"“{describe_template(text.default)}”", f"other texts for {values}; {checks}"
        case steps.SetAttribute(key=key, value=value):
            return f"{key} = {value}", ""
        case steps.Exit():
            return "Exit", ""


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _capitalize(text: str) -> str:
    return text[:1].upper() + text[1:]


async def find_reference_names(tx: Tx, organization_id: UUID, references: References) -> dict[str, str]:
    """The names of the segments and campaigns, by their ids. Deleted segments are absent."""
    segments = await find_names(tx, organization_id, SEGMENT.decode_all(references.segments))
    names = {SEGMENT.encode(it): name for it, name in segments.items()}
    if campaigns := CAMPAIGN.decode_all(references.campaigns):
        campaign_names = await find_campaign_names(tx, organization_id, campaigns)
        names |= {CAMPAIGN.encode(it): name for it, name in campaign_names}
    return names


def name_references(text: str, names: Mapping[str, str]) -> str:
    """Replace the ids of segments and campaigns in a text by their names."""
    for identifier, name in names.items():
        text = text.replace(identifier, f"“{name}”")
    return text
