"""Valid values for the rules that JSON Schema cannot say; each entry gives its reason.

No check is switched off and no status is added to the expected ones: a value made here must be accepted.
"""

import os
import string
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from hypothesis import strategies as st
from schemathesis.core.parameters import ParameterLocation
from schemathesis.generation.meta import TestPhase
from tests.support.client import get_url

import schemathesis
from regulars.consent.errors import InvalidPhoneNumber
from regulars.consent.phone import read_consent_number
from regulars.kit.ids import RESERVED_PREFIXES
from regulars.kit.text import is_control
from regulars.sales.model import QUANTITY_LIMIT
from regulars.stores.model import COUNTRY_CODES
from schemathesis import Case, HookContext

PARAMETER_CHARACTERS_MAX = 1_024
POSSIBLE_NUMBER = "+33612345678"
STORE, CUSTOMER = os.environ["REGULARS_TEST_FUZZ_STORE"], os.environ["REGULARS_TEST_FUZZ_CUSTOMER"]

_text = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=255).filter(
    lambda text: text == text.strip() and not any(map(is_control, text))
)

# "No outer white space, no control characters, no reserved prefix" needs look-around that JSON Schema's regular
# expressions have, but in a form (Unicode white space) that its dialects disagree about.
external_ids = _text.filter(lambda text: not text.startswith(RESERVED_PREFIXES))
schemathesis.openapi.format("external-id", external_ids)

# A reference must exist to be accepted, and what exists is not for a schema to know.
references = st.sampled_from([STORE, CUSTOMER]) | external_ids
schemathesis.openapi.format("reference", references)
schemathesis.openapi.format("path-reference", references)


@st.composite
def past_timestamps(draw: st.DrawFn) -> str:
    """ISO 8601 with any offset: `date-time` says the form, but not "never in the future" nor "years 1 to 9999 in UTC"."""
    latest = datetime.now(UTC).replace(tzinfo=None) - timedelta(days=1)
    moment = draw(st.datetimes(min_value=datetime(1, 1, 2), max_value=latest))  # noqa: DTZ001  # the offset is drawn below
    minutes = draw(st.integers(-23 * 60 - 59, 23 * 60 + 59))
    shifted = moment.replace(tzinfo=UTC).astimezone(timezone(timedelta(minutes=minutes)))
    return shifted.isoformat(timespec=draw(st.sampled_from(["seconds", "milliseconds", "microseconds"])))


schemathesis.openapi.format("date-time", past_timestamps())

# "A possible number of its country" is a table, not a pattern.
schemathesis.openapi.format(
    "phone-number",
    st.builds("+336{}".format, st.text(string.digits, min_size=8, max_size=8))
    | st.builds("+1 (415) 555-{}".format, st.text(string.digits, min_size=4, max_size=4)),
)

# The assigned codes of ISO 3166-1 change over the years; in either case, as the interface takes them.
schemathesis.openapi.format(
    "country-code", st.sampled_from(sorted(COUNTRY_CODES)).flatmap(lambda code: st.sampled_from([code, code.lower()]))
)


@schemathesis.hook
def before_call(context: HookContext, case: Case, kwargs: dict[str, Any]) -> None:
    """Repair what depends on more than one value, or on what is stored; only where the value is meant to be valid."""
    if case.meta is None:
        return
    _shorten_query(case)
    if isinstance(case.body, dict) and case.meta.is_negative_at(ParameterLocation.BODY):
        _break_empty_maps(case.body)
    if case.query and case.meta.is_negative_at(ParameterLocation.HEADER):
        # A dry run ignores its key, a wrong one too.
        case.query.pop("dry_run", None)
    if case.query and not case.meta.is_negative_at(ParameterLocation.QUERY):
        _repair_query(case, is_stateful=case.meta.phase.name is TestPhase.STATEFUL)
    if isinstance(case.body, dict) and not case.meta.is_negative_at(ParameterLocation.BODY):
        _repair_body(case.body)
    elif isinstance(case.body, dict) and case.path.endswith("/attributes") and "attributes" not in case.body:
        # The flat map is taken too, which is said in words.
        case.body["attributes"] = 1
    elif isinstance(case.body, dict) and case.path.endswith("/batch") and isinstance(case.body.get("items"), list):
        # An item that is wrong is refused at its place and the rest is taken: to be refused, the list must be wrong.
        case.body["items"] = []


def _break_empty_maps(body: dict[str, Any]) -> None:
    """An empty list is taken for an empty map, which is said in words."""
    lines = body.get("line_items")
    products = [line.get("product") for line in lines if isinstance(line, dict)] if isinstance(lines, list) else []
    for holder in (body, *[product for product in products if isinstance(product, dict)]):
        for name in ("attributes", "properties"):
            if holder.get(name) == []:
                holder[name] = [1]


def _shorten_query(case: Case) -> None:
    """Makes a long value too long for its parameter, but not for the URL, which has a status of its own."""
    for name, value in (case.query or {}).items():
        if isinstance(value, str) and len(value) > PARAMETER_CHARACTERS_MAX:
            case.query[name] = "x" * (PARAMETER_CHARACTERS_MAX + 1)


def _repair_query(case: Case, *, is_stateful: bool) -> None:
    if is_stateful:
        # A dry run creates nothing that the calls after it could find.
        case.query.pop("dry_run", None)
    number = case.query.get("phone_number")
    if case.path == "/v1/subscriptions" and isinstance(number, str) and not _is_possible(number):
        # The boundary cases of the pattern (`+00000`) are numbers of no country.
        case.query["phone_number"] = POSSIBLE_NUMBER
    if "cursor" in case.query:
        # A cursor is signed for one list and its filters: ask the list itself for one, or go without.
        filters = {name: value for name, value in case.query.items() if name not in {"cursor", "limit"}}
        target = os.environ["REGULARS_TEST_FUZZ_URL"] + case.formatted_path
        headers = {"x-api-key": os.environ["REGULARS_TEST_FUZZ_KEY"]}
        page = get_url(target, params={**filters, "limit": 1}, headers=headers).json()
        if page.get("next_cursor"):
            case.query["cursor"] = page["next_cursor"]
        else:
            del case.query["cursor"]


def _repair_body(body: dict[str, Any]) -> None:
    if "consent_source" not in body and "external_id" not in body:
        _name_customer(body)
    number = body.get("phone_number")
    if isinstance(number, str) and "consent_source" in body and not _is_possible(number):
        body["phone_number"] = POSSIBLE_NUMBER
    if isinstance(number, str) and "consent_source" not in body and "external_id" not in body:
        if not _is_possible(number):
            body["phone_number"] = POSSIBLE_NUMBER
        if body.get("profile_id") is not None:
            # An opt-out that names both needs them to be linked, which only the stored data knows.
            del body["profile_id"]
    _spell_integers(body)
    for line in body.get("line_items") or ():
        _spell_integers(line)
        if isinstance(line.get("quantity"), float):
            # "At most 15 significant digits" counts decimal digits, which no keyword for numbers does.
            line["quantity"] = _rounded(line["quantity"])


def _name_customer(body: dict[str, Any]) -> None:
    """That one of two members is required is said in words: generators of clients cannot read a choice."""
    for item in body.get("items") or ():
        if isinstance(item, dict) and not {"external_id", "line_items"} & item.keys():
            named = isinstance(item.get("phone_number"), str) + isinstance(item.get("profile_id"), str)
            if named != 1:
                item.pop("profile_id", None)
                item["phone_number"] = POSSIBLE_NUMBER
    is_withdrawal = "items" not in body and "attributes" not in body
    if is_withdrawal and body.get("phone_number") is None and body.get("profile_id") is None:
        body["phone_number"] = POSSIBLE_NUMBER


def _spell_integers(body: dict[str, Any]) -> None:
    """To JSON Schema `18023.0` is an integer; to the interface an amount with a fraction is a mistake, even of zero."""
    for name, value in body.items():
        if name.endswith("_cents") and isinstance(value, float):
            body[name] = int(value)


def _is_possible(number: str) -> bool:
    try:
        read_consent_number("+" + number[1:] if number.startswith(" ") else number)
    except InvalidPhoneNumber:
        return False
    return True


def _rounded(quantity: float) -> float:
    rounded = float(f"{quantity:.6g}")
    return rounded if 0 < abs(rounded) < QUANTITY_LIMIT else 1.5
