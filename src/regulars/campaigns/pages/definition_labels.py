"""The definition of a campaign in words: its audience, its start, its texts and their links, and its faults."""

from datetime import datetime
from typing import NamedTuple
from zoneinfo import ZoneInfo

from regulars.campaigns.definition import Definition, SendAt, SendAtLocalTime
from regulars.campaigns.local_times import FREEZE_BEFORE
from regulars.campaigns.manage import list_choices
from regulars.campaigns.pages.common import VARIANT_LETTERS
from regulars.experiments.arms import Variant
from regulars.kit.clock import in_zone
from regulars.kit.db import Tx
from regulars.segments.saved.manage import list_choices as list_segment_choices
from regulars.texts.labels import label_choice
from regulars.texts.template import texts_by_value
from regulars.texts.template_labels import describe_template, describe_without_values, list_destinations
from regulars.web.format import Format
from regulars.web.visit import Visit


class LanguageText(NamedTuple):
    """A text in one language; `without_values` is the text of a customer without any values, if it is another one."""

    label: str
    text: str
    without_values: str | None


class VariantText(NamedTuple):
    letter: str
    share: int
    languages: list[LanguageText]
    # The addresses to which the links of the texts lead.
    links: list[str]


def describe_texts(formats: Format, definition: Definition) -> list[VariantText]:
    return [
        _describe_variant(formats, letter, variant)
        for letter, variant in zip(VARIANT_LETTERS, definition.variants, strict=False)
    ]


def _describe_variant(formats: Format, letter: str, variant: Variant) -> VariantText:
    texts = texts_by_value(variant.text)
    languages = [
        LanguageText(
            label_choice(variant.text, value, formats.locale.languages),
            describe_template(text),
            describe_without_values(text),
        )
        for value, text in texts.items()
    ]
    links = dict.fromkeys(url for text in texts.values() for url in list_destinations(text))
    return VariantText(letter, variant.share, languages, list(links))


def name_zone(zone: ZoneInfo, at: datetime) -> str:
    """A zone at a moment, such as `Paris time, UTC+1`."""
    city = zone.key.rpartition("/")[2].replace("_", " ")
    offset = in_zone(at, zone).strftime("%z")
    hours, minutes = int(offset[:3]), offset[3:]
    utc = "UTC" if not int(offset) else f"UTC{hours:+d}" + (f":{minutes}" if minutes != "00" else "")
    return utc if city == "UTC" else f"{city} time, {utc}"


def describe_path(path: str) -> str:
    """The label for the path of a fault in the definition: `variants[1].text` is the text of variant B."""
    name, _, index = path.partition("[")
    if name == "variants" and index:
        return f"Text of variant {VARIANT_LETTERS[int(index.partition(']')[0])]}"
    return {
        "include": "Segments",
        "exclude": "Left out",
        "exclude_received": "Left out",
        "variants": "Texts",
        "schedule": "Start",
        "not_after": "Stop sending at",
    }.get(name, name)


def describe_freeze(formats: Format, definition: Definition, first_texts_at: datetime | None) -> str | None:
    """When the audience of a campaign at a local time is fixed, in the zone of the organization; else None. Until then
    the campaign can be changed."""
    if first_texts_at is None or not isinstance(definition.schedule, SendAtLocalTime):
        return None
    fixed_at = first_texts_at - FREEZE_BEFORE
    if fixed_at <= formats.now:
        return "Audience fixed at once; recipients whose local time has passed get the text if their hours are open."
    zone = name_zone(formats.zone, first_texts_at)
    return f"Audience fixed {formats.moment(fixed_at)}, first texts {formats.moment(first_texts_at)} ({zone})"


def describe_schedule(formats: Format, definition: Definition) -> str:
    match definition.schedule:
        case SendAt(at=at):
            return f"{formats.full_moment(at)} ({name_zone(formats.zone, at)})"
        case SendAtLocalTime(day=day, time=clock):
            return f"{formats.full_day(day)}, {clock} in each recipient's own time zone"
        case _:
            return "As soon as it is confirmed"


async def describe_audience(tx: Tx, visit: Visit, definition: Definition) -> list[tuple[str, list[str]]]:
    """The names of the included and excluded segments and campaigns, each list with a label."""
    segments = dict(await list_segment_choices(tx, visit.organization_id))
    campaigns = dict(await list_choices(tx, visit.organization_id)) if definition.exclude_received else {}
    lists = [
        ("Segments", [segments.get(it, it) for it in definition.include]),
        ("Left out", [segments.get(it, it) for it in definition.exclude]),
        ("Left out: recipients of", [campaigns.get(it, it) for it in definition.exclude_received]),
    ]
    return [(label, names) for label, names in lists if names]
