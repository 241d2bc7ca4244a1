import re
from collections import Counter

from tests.support.project import PACKAGE
from tests.support.routes import ROUTES

from regulars.http.refusals import refusals_of_all
from regulars.kit import errors
from regulars.kit.errors import ApiError, invalid

EVERY_ERROR = refusals_of_all(ROUTES)

# The rulings' list of codes, with their statuses.
CODES = {
    400: {"INVALID_JSON", "VALIDATION_ERROR", "RESERVED_EXTERNAL_ID", "OCCURRED_AT_IN_FUTURE", "CONSENTED_AT_IN_FUTURE",
          "INVALID_PHONE_NUMBER", "INVALID_CURSOR", "INVALID_IDEMPOTENCY_KEY"},
    401: {"UNAUTHORIZED"},
    403: {"FORBIDDEN"},
    404: {"PROFILE_NOT_FOUND", "STORE_NOT_FOUND", "SALES_EVENT_NOT_FOUND", "SUBSCRIPTION_NOT_FOUND", "ROUTE_NOT_FOUND"},
    405: {"METHOD_NOT_ALLOWED"},
    408: {"REQUEST_TIMEOUT"},
    409: {"IDEMPOTENCY_CONFLICT", "IDEMPOTENCY_IN_PROGRESS"},
    413: {"PAYLOAD_TOO_LARGE"},
    414: {"URI_TOO_LONG"},
    415: {"UNSUPPORTED_MEDIA_TYPE"},
    429: {"RATE_LIMITED"},
    431: {"HEADERS_TOO_LARGE"},
    500: {"INTERNAL_ERROR"},
    503: {"UNAVAILABLE"},
}  # fmt: skip


def test_the_codes_and_statuses_are_those_of_the_rulings():
    for status, codes in CODES.items():
        assert {error.code for error in EVERY_ERROR if error.status == status} >= codes
    assert 422 not in {error.status for error in EVERY_ERROR}


def defined(kind: type[ApiError] = ApiError) -> set[type[ApiError]]:
    """Every class of the package, in whatever room."""
    below = {each for each in kind.__subclasses__() if each.__module__.startswith("regulars.")}
    return below.union(*map(defined, below))


def test_every_refusal_is_declared_by_a_route_and_has_a_code_of_its_own():
    assert set(EVERY_ERROR) == defined()
    assert max(Counter(error.code for error in EVERY_ERROR).values()) == 1


def test_every_refusal_says_its_cause_its_fix_and_whether_to_send_it_again():
    for error in EVERY_ERROR:
        assert error.title
        assert not error.title.endswith(".")
        assert error.cause.endswith(".")
        assert error.fix.endswith(".")
        assert error.retry.startswith(("Yes", "No"))


def test_kit_and_http_name_no_refusal_of_a_room():
    """Each room owns its errors; what stands in `kit` may meet any request."""
    kit = {error.__name__ for error in defined() if error.__module__ == "regulars.kit.errors"}
    assert {name for name in vars(errors) if name in {error.__name__ for error in defined()}} == kit
    rooms = {error.__name__ for error in defined() if error.__name__ not in kit}
    rooms -= {error.__name__ for error in defined() if error.__module__ == "regulars.idempotency.errors"}
    below = [path for room in ("kit", "http", "idempotency", "work") for path in (PACKAGE / room).rglob("*.py")]
    named = {path.name: rooms.intersection(re.findall(r"\w+", path.read_text())) for path in below}
    assert {path: names for path, names in named.items() if names} == {}


def test_an_error_about_a_field_names_it_in_both_places():
    error = invalid("store_id", "BLANK", "It must not be empty.")
    assert error.detail == "store_id: It must not be empty."
    assert [(e.field, e.code, e.message) for e in error.errors] == [("store_id", "BLANK", "It must not be empty.")]
    assert invalid("", "FORMAT", "Odd.").detail == "Odd."
