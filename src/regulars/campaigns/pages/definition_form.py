"""Converts between a campaign's definition and the fields of the editor's form."""

from collections.abc import Mapping
from datetime import date, datetime, timedelta
from functools import partial
from typing import Final
from zoneinfo import ZoneInfo

from regulars.campaigns.definition import (
    SEGMENTS_MAX,
    VARIANTS_MAX,
    Definition,
    SendAt,
    SendAtLocalTime,
    SendNow,
    write_definition,
)
from regulars.campaigns.estimate import HOLDOUTS_OFFERED
from regulars.conditions.documents import DefinitionRefused
from regulars.experiments.arms import PERCENT, Variant
from regulars.kit.clock import in_zone
from regulars.texts.text_form import fill_text_form, list_language_rows, read_text_form
from regulars.web.form import FormState, format_time_field

NAME_CHARACTERS_MAX: Final = 120
HOLDOUTS: Final = (0, *HOLDOUTS_OFFERED)
HOLDOUT_PERCENT_MAX: Final = 90
TEXTS_PER_HOUR_MAX: Final = 10_000_000
SUGGESTED_TIME: Final = "10:00"
# The choice of a holdout percentage that the form does not offer.
OTHER: Final = "other"
# The list fields of the form, and their names in the definition.
LISTS: Final = {"include": "include", "exclude": "exclude", "received": "exclude_received"}


def fill_form(definition: Definition, zone: ZoneInfo) -> FormState:
    """The form of a definition, with times in this zone; fields of a variant have a prefix such as `v1_`."""
    holdout = definition.holdout_percent
    values = {
        "name": definition.name,
        "holdout": str(holdout) if holdout in HOLDOUTS else OTHER,
        "holdout_other": "" if holdout in HOLDOUTS else str(holdout),
        "variants": str(max(len(definition.variants), 1)),
        "not_after": "" if definition.not_after is None else format_time_field(zone, definition.not_after),
        "rate": "" if definition.texts_per_hour is None else str(definition.texts_per_hour),
        "cap": definition.cap,
        "personal_links": "on" if definition.personal_links else "",
        "margin": str(definition.margin_percent),
        "v1_share": str(PERCENT),
        **_fill_schedule(definition, zone),
    }
    for field, name in LISTS.items():
        values |= {f"{field}_{row}": it for row, it in enumerate(getattr(definition, name))}
    for number, variant in enumerate(definition.variants, start=1):
        values |= {f"v{number}_{name}": value for name, value in fill_text_form(variant.text).items()}
        values[f"v{number}_share"] = str(variant.share)
    return FormState(values)


def suggest_start(now: datetime, zone: ZoneInfo) -> dict[str, str]:
    """What the fields of a start at a time show before a user chooses one: the next day, in the morning."""
    day = in_zone(now, zone).date() + timedelta(days=1)
    return {"at": f"{day.isoformat()}T{SUGGESTED_TIME}", "day": day.isoformat(), "time": SUGGESTED_TIME}


def _fill_schedule(definition: Definition, zone: ZoneInfo) -> dict[str, str]:
    match definition.schedule:
        case SendAt(at=at):
            return {"start": "at", "at": format_time_field(zone, at)}
        case SendAtLocalTime(day=day, time=clock):
            return {"start": "local", "day": day.isoformat(), "time": clock}
        case _:
            return {"start": "now"}


def read_form(form: FormState, zone: ZoneInfo) -> Definition:
    """Read the definition; invalid fields get an error in the form and a default in the definition. What a file may not
    contain is refused here too, so that whatever is saved can be opened."""
    definition = _read_fields(form, zone)
    try:
        write_definition(definition)
    except DefinitionRefused as error:
        form.refuse(field_of(error.faults[0].place), error.faults[0].message)
    return definition


def _read_fields(form: FormState, zone: ZoneInfo) -> Definition:
    return Definition(
        name=form.text("name", characters_max=NAME_CHARACTERS_MAX) or "-",
        include=_read_list(form, "include"),
        exclude=_read_list(form, "exclude"),
        exclude_received=_read_list(form, "received"),
        variants=_read_variants(form),
        holdout_percent=_read_holdout(form),
        schedule=_read_schedule(form, zone),
        not_after=form.moment("not_after", zone, required=False),
        texts_per_hour=_read_integer(form, "rate", 1, TEXTS_PER_HOUR_MAX) if form.value("rate").strip() else None,
        personal_links=form.is_checked("personal_links"),
        cap="wait" if form.value("cap") == "wait" else "skip",
        margin_percent=_read_integer(form, "margin", 0, PERCENT),
    )


def list_filled_rows(values: Mapping[str, str], field: str) -> list[int]:
    """The row numbers of a list field that are filled in, and the number of an empty row."""
    filled = [row for row in range(SEGMENTS_MAX) if values.get(f"{field}_{row}", "")]
    empty_row = next((row for row in range(SEGMENTS_MAX) if row not in filled), None)
    return filled if empty_row is None else [*filled, empty_row]


def count_variants(values: Mapping[str, str]) -> int:
    text = values.get("variants", "")
    return min(max(int(text), 1), VARIANTS_MAX) if text.isascii() and text.isdigit() and len(text) == 1 else 1


def values_of_variant(values: Mapping[str, str], number: int) -> dict[str, str]:
    """The form fields of one variant, without the prefix of their names."""
    prefix = f"v{number}_"
    return {name.removeprefix(prefix): value for name, value in values.items() if name.startswith(prefix)}


def language_rows(values: Mapping[str, str], number: int) -> list[int]:
    return list_language_rows(values_of_variant(values, number))


def add_variant(values: Mapping[str, str]) -> dict[str, str]:
    """Add a variant, and give all variants equal shares."""
    count = min(count_variants(values) + 1, VARIANTS_MAX)
    return {**values, "variants": str(count), **_equal_shares(count)}


def remove_variant(values: Mapping[str, str], removed: int) -> dict[str, str]:
    """Remove a variant: later variants move up, and all remaining variants get equal shares."""
    count = count_variants(values)
    if count == 1 or not 1 <= removed <= count:
        return dict(values)
    moved = {name: value for name, value in values.items() if name.partition("_")[0] not in _PREFIXES}
    numbers = [number for number in range(1, count + 1) if number != removed]
    for number, old_number in enumerate(numbers, start=1):
        moved |= {f"v{number}_{name}": value for name, value in values_of_variant(values, old_number).items()}
    return {**moved, "variants": str(count - 1), **_equal_shares(count - 1)}


_PREFIXES: Final = frozenset(f"v{number}" for number in range(1, VARIANTS_MAX + 1))


def field_of(path: str) -> str:
    """The form field for the path of a fault in the definition, such as `variants[0].text`."""
    name, _, index = path.partition("[")
    number = int(index.partition("]")[0]) if index else 0
    if name == "variants":
        return f"v{number + 1}_text" if index else "v1_share"
    if name == "schedule":
        return "start"
    fields = {list_name: field for field, list_name in LISTS.items()}
    return f"{fields[name]}_{number}" if name in fields else name


def _equal_shares(count: int) -> dict[str, str]:
    """The fields of equal shares; the first variants get the remainder, so that the shares add up to 100 percent."""
    share, remainder = divmod(PERCENT, count)
    return {f"v{number}_share": str(share + (number <= remainder)) for number in range(1, count + 1)}


def _read_list(form: FormState, field: str) -> tuple[str, ...]:
    ids = [form.value(f"{field}_{row}") for row in range(SEGMENTS_MAX)]
    return tuple(dict.fromkeys(it for it in ids if it))


def _read_variants(form: FormState) -> tuple[Variant, ...]:
    """Read the variants; none if the only text is empty, because a draft may be saved without a text."""
    count = count_variants(form.values)
    if count == 1 and not form.value("v1_text").strip():
        return ()
    variants = []
    for number in range(1, count + 1):
        prefix = f"v{number}_"
        text = read_text_form(values_of_variant(form.values, number), partial(_refuse, form, prefix))
        share = _read_integer(form, f"{prefix}share", 1, PERCENT) if count > 1 else PERCENT
        variants.append(Variant(text=text, share=share))
    return tuple(variants)


def _refuse(form: FormState, prefix: str, name: str, sentence: str) -> None:
    form.refuse(f"{prefix}{name}", sentence)


def _read_holdout(form: FormState) -> int:
    percent = form.choice("holdout", (*map(str, HOLDOUTS), OTHER))
    if percent == OTHER:
        return _read_integer(form, "holdout_other", 0, HOLDOUT_PERCENT_MAX)
    return int(percent) if percent.isdigit() else 0


def _read_schedule(form: FormState, zone: ZoneInfo) -> SendNow | SendAt | SendAtLocalTime:
    start = form.choice("start", ("now", "at", "local"))
    if start == "at":
        at = form.moment("at", zone)
        return SendNow() if at is None else SendAt(at=at)
    if start != "local":
        return SendNow()
    try:
        day = date.fromisoformat(form.value("day").strip())
    except ValueError:
        form.refuse("day", "Choose a day.")
        return SendNow()
    return SendAtLocalTime(day=day, time=form.clock("time"))


def _read_integer(form: FormState, name: str, minimum: int, maximum: int) -> int:
    return min(max(form.integer(name, minimum=minimum, maximum=maximum), minimum), maximum)
