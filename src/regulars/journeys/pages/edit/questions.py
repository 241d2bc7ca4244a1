"""Reading the form of one condition."""

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from regulars.conditions.comparisons import NEGATIVE, OF_DAYS, SEVERAL_VALUES
from regulars.conditions.labels import COMPARISONS
from regulars.conditions.tree import (
    Bought,
    Condition,
    Consent,
    InSegment,
    OfAmount,
    OfAttribute,
    OfCurrency,
    OfProduct,
    OfProperty,
    OfStore,
    Window,
)
from regulars.journeys.drafts.tree import GROUPS
from regulars.journeys.pages.edit.panels import CURRENCIES, needs_no_value
from regulars.web.form import FormState

DAYS_MAX: Final = 3_650
TIMES_MAX: Final = 1_000
CENTS_MAX: Final = (1 << 53) - 1
VALUES_MAX: Final = 200
KEY_CHARACTERS_MAX: Final = 128
SEGMENT_CHARACTERS_MAX: Final = 64


def read_condition(form: FormState, stores: Sequence[str]) -> Condition | None:
    """The condition as it was filled in; None where something is wrong. `stores` are those that were ticked."""
    made = _read(form, stores)
    return None if form.is_refused else made


def _read(form: FormState, stores: Sequence[str]) -> Condition | None:
    match form.value("type"):
        case "subscribed":
            return Consent(state="may_be_texted", is_=form.choice("is", ("yes", "no")) == "yes")
        case "purchases":
            return _purchases(form)
        case "amount":
            return _amount(form)
        case "currency":
            return _currency(form)
        case "store":
            return _store(form, stores)
        case "attribute":
            return _attribute(form)
        case "segment":
            return _segment(form)
        case "product":
            return _product(form)
        case "group":
            kind = form.choice("group", tuple(GROUPS))
            return GROUPS[kind](of=()) if kind in GROUPS else None
        case _:
            form.refuse("type", "Choose what to ask.")
            return None


def _purchases(form: FormState) -> Bought:
    days = min(max(form.whole("in_days", minimum=1, maximum=DAYS_MAX), 1), DAYS_MAX)
    if form.choice("purchases", ("none", "at_least")) == "none":
        return Bought(window=Window(last_days=days), none=True)
    least = form.whole("at_least", minimum=1, maximum=TIMES_MAX)
    return Bought(window=Window(last_days=days), at_least=min(max(least, 1), TIMES_MAX))


def _amount(form: FormState) -> OfAmount:
    least, most = _cents(form, "least"), _cents(form, "most")
    if least is None and most is None:
        form.refuse("least", "Say from which amount, or up to which.")
    elif least is not None and most is not None and least > most:
        form.refuse("most", "This is less than the amount above.")
    return OfAmount(at_least_cents=least, at_most_cents=most)


def _currency(form: FormState) -> OfCurrency | None:
    chosen = tuple(one for one in CURRENCIES if form.is_checked(f"currency_{one}"))
    if not chosen:
        form.refuse("currency_EUR", "Choose one at least.")
        return None
    return OfCurrency(any_of=chosen)


def _store(form: FormState, stores: Sequence[str]) -> OfStore | None:
    if not 0 < len(stores) <= VALUES_MAX:
        form.refuse("stores", f"Choose 1 to {VALUES_MAX} stores.")
        return None
    return OfStore(any_of=tuple(stores))


def _segment(form: FormState) -> InSegment | None:
    """Whether it exists is said by the check of the draft."""
    chosen, is_in = form.value("segment"), form.choice("is", ("yes", "no")) == "yes"
    if not 0 < len(chosen) <= SEGMENT_CHARACTERS_MAX:
        form.refuse("segment", "Choose a segment.")
        return None
    return InSegment(id=chosen, is_=is_in)


def _cents(form: FormState, name: str) -> int | None:
    text = form.value(name).strip().replace(",", ".")
    if not text:
        return None
    try:
        cents = Decimal(text) * 100
        whole = int(cents) if cents.is_finite() and cents == cents.to_integral_value() else -1
    except (InvalidOperation, ValueError, OverflowError):
        whole = -1
    if len(text) > 20 or not 0 <= whole <= CENTS_MAX:  # noqa: PLR2004  # no amount is longer
        form.refuse(name, "An amount such as 150 or 19.90.")
        return None
    return whole


def _attribute(form: FormState) -> OfAttribute | None:
    compared = _comparison(form)
    return None if form.is_refused else OfAttribute(**compared)


def _product(form: FormState) -> OfProduct | None:
    products = _lines(form, "products")
    if not form.value("key"):
        if not products:
            form.refuse("products", "Name products, or choose a property.")
        return OfProduct(any_of=products)
    compared = _comparison(form)
    return None if form.is_refused else OfProduct(any_of=products, property=OfProperty(**compared))


def _comparison(form: FormState) -> dict[str, Any]:
    """Which fields count depends on the comparison; whether its type offers it is said by the check of the draft."""
    key = form.text("key", characters_max=KEY_CHARACTERS_MAX)
    comparison = form.choice("comparison", tuple(COMPARISONS))
    compared: dict[str, Any] = {"key": key, "comparison": comparison}
    if comparison in NEGATIVE:
        compared["without_value"] = form.value("without") == "yes"
    if comparison in OF_DAYS:
        compared["days"] = min(max(form.whole("value", minimum=1, maximum=DAYS_MAX), 1), DAYS_MAX)
    elif comparison == "between":
        compared["values"] = (form.text("value"), form.text("until"))
    elif comparison in SEVERAL_VALUES:
        compared["values"] = _lines(form, "values")
        if not compared["values"]:
            form.refuse("values", "Write one at least, each on a line of its own.")
    elif not needs_no_value(comparison):
        compared["value"] = form.text("value")
    return compared


def _lines(form: FormState, name: str) -> tuple[str, ...]:
    lines = [line.strip() for line in form.value(name).splitlines()]
    found = tuple(dict.fromkeys(line for line in lines if line))
    if len(found) > VALUES_MAX:
        form.refuse(name, f"At most {VALUES_MAX}; these are {len(found)}.")
    return found
