from collections import Counter

from regulars.kit import errors
from regulars.kit.errors import ALL_ERRORS, ApiError, invalid

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
        assert {error.code for error in ALL_ERRORS if error.status == status} >= codes
    assert 422 not in {error.status for error in ALL_ERRORS}


def test_every_refusal_is_in_the_list_once_and_has_a_code_of_its_own():
    defined = {value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, ApiError)}
    assert set(ALL_ERRORS) == defined - {ApiError}
    assert len(ALL_ERRORS) == len(set(ALL_ERRORS))
    assert max(Counter(error.code for error in ALL_ERRORS).values()) == 1
    assert all(error.title and not error.title.endswith(".") for error in ALL_ERRORS)


def test_an_error_about_a_field_names_it_in_both_places():
    error = invalid("store_id", "BLANK", "It must not be empty.")
    assert error.detail == "store_id: It must not be empty."
    assert [(e.field, e.code, e.message) for e in error.errors] == [("store_id", "BLANK", "It must not be empty.")]
    assert invalid("", "FORMAT", "Odd.").detail == "Odd."
