"""The JSON routes of consent: opt-in, opt-out, subscriptions and their history."""

from collections.abc import Mapping, Sequence
from functools import partial
from uuid import UUID

import msgspec

from regulars.consent import wire
from regulars.consent.certificate import entry_as_json
from regulars.consent.check import CheckRequest, ConsentVerdict, FindSuppressed, check_consents
from regulars.consent.decode import decode_check, decode_opt_in, decode_opt_out, read_profile_reference
from regulars.consent.errors import ConsentedAtInFuture, InvalidPhoneNumber, SubscriptionNotFound
from regulars.consent.find import find_subscription, list_subscriptions
from regulars.consent.history import list_entries
from regulars.consent.ledger import EventOrigin, OptInResult
from regulars.consent.model import LedgerEntry, Outcome, Reason, Status
from regulars.consent.opt_in import Consent, opt_in
from regulars.consent.opt_out import OptOutResult, Withdrawal, opt_out
from regulars.consent.phone import NUMBER_PATTERN, read_consent_number
from regulars.consent.subscription import Subscription, format_optional_timestamp, subscription_out
from regulars.http.parameters import CHANGES_PARAMETER, PAGE_PARAMETERS, Parameter
from regulars.http.request import ApiResponse, Caller, Request
from regulars.http.route import LONG_WAIT_S_MAX, QueryRoute, ReadRoute, Route, WriteRoute
from regulars.kit.changes import read_start, scope_of_changes
from regulars.kit.db import Tx
from regulars.kit.errors import ApiError, InvalidCursor, ValidationError, invalid
from regulars.kit.ids import PROFILE, SUBSCRIPTION
from regulars.kit.json import encode
from regulars.kit.pagination import cut_page, read_cursor, read_limit, scope_of
from regulars.kit.wire import REFERENCE_SCHEMA
from regulars.profiles.errors import ProfileNotFound
from regulars.profiles.find import find_profiles
from regulars.stores.model import StoreNotFound
from regulars.work.facts import AutomationOut

_NULL_JSON = msgspec.Raw(b"null")


def prepare_opt_in(request: Request) -> Consent:
    return decode_opt_in(request.body, origin=_origin(request))


async def run_opt_ins(tx: Tx, organization_id: UUID, requests: Sequence[Request]) -> list[ApiResponse | ApiError]:
    commands = [request.command for request in requests]
    results = await opt_in(tx, organization_id, commands, secret=requests[0].caller.secret)
    return [
        result if isinstance(result, ApiError) else _respond_to_opt_in(result, request.caller)
        for result, request in zip(results, requests, strict=True)
    ]


def prepare_opt_out(request: Request) -> Withdrawal:
    return decode_opt_out(request.body, origin=_origin(request), default_country=request.caller.default_country)


async def run_opt_outs(tx: Tx, organization_id: UUID, requests: Sequence[Request]) -> list[ApiResponse | ApiError]:
    commands = [request.command for request in requests]
    results = await opt_out(tx, organization_id, commands, secret=requests[0].caller.secret)
    return [
        result if isinstance(result, ApiError) else _respond_to_opt_out(result, request)
        for result, request in zip(results, requests, strict=True)
    ]


def prepare_check(request: Request) -> CheckRequest:
    return decode_check(request.body, default_country=request.caller.default_country)


async def handle_check(
    tx: Tx, request: Request, body: CheckRequest, *, find_suppressed: FindSuppressed | None = None
) -> ApiResponse:
    organization_id, secret = request.caller.organization_id, request.caller.secret
    verdicts = await check_consents(tx, organization_id, body.items, secret=secret, find_suppressed=find_suppressed)
    return ApiResponse(200, encode(wire.CheckOut([_verdict_out(verdict) for verdict in verdicts])))


async def handle_list(tx: Tx, request: Request) -> ApiResponse:
    caller, query = request.caller, request.query
    limit = read_limit(query)
    phone_number = _read_number_filter(query)
    status = _read_status_filter(query)
    reference = None if "profile_id" not in query else read_profile_reference(query["profile_id"])
    filters = {"phone_number": phone_number, "status": status, "profile_id": query.get("profile_id")}
    # A cursor is valid only for the filters with which it was made: its scope.
    scope = scope_of_changes("subscriptions", query, **filters)
    start = await read_start(tx, query, secret=caller.secret, scope=scope)
    profile_id = None
    if reference is not None:
        profile = (await find_profiles(tx, caller.organization_id, [reference])).get(reference)
        if profile is None:
            raise ProfileNotFound("profile_id names no profile of this organization.")
        profile_id = profile.id
    subscriptions = await list_subscriptions(
        tx,
        caller.organization_id,
        secret=caller.secret,
        phone_number=phone_number,
        profile_id=profile_id,
        status=status,
        after=start.after,
        since=start.since,
        limit=limit + 1,
    )
    page, has_more, cursor = start.cut_page(subscriptions, limit, lambda row: (row.updated_at, row.id))
    data = [subscription_out(subscription) for subscription in page]
    return ApiResponse(200, encode(wire.SubscriptionPageOut(data, has_more, cursor)))


async def handle_subscription(tx: Tx, request: Request) -> ApiResponse:
    return ApiResponse(200, encode(subscription_out(await _find_requested(tx, request))))


async def handle_history(tx: Tx, request: Request) -> ApiResponse:
    caller, query = request.caller, request.query
    limit = read_limit(query)
    scope = scope_of("history", {}, subscription_id=request.references[0])
    cursor = query.get("cursor")
    after = 0 if cursor is None else int(read_cursor(caller.secret, scope, cursor)[0])
    subscription = await _find_requested(tx, request)
    entries = await list_entries(tx, caller.organization_id, subscription.id, after=after, limit=limit + 1)
    page, next_cursor = cut_page(
        entries, limit, secret=caller.secret, scope=scope, position_of=lambda entry: (str(entry.sequence),)
    )
    return ApiResponse(
        200, encode(wire.HistoryPageOut([_entry_out(entry) for entry in page], next_cursor is not None, next_cursor))
    )


def _origin(request: Request) -> EventOrigin:
    return EventOrigin(api_key_id=request.caller.api_key_id, request_id=request.request_id)


def _read_number_filter(query: Mapping[str, str]) -> str | None:
    text = query.get("phone_number")
    if text is None:
        return None
    # A plus in a query string is decoded as a space, so a leading space is a plus that the caller did not escape.
    return read_consent_number("+" + text[1:] if text.startswith(" ") else text)


def _read_status_filter(query: Mapping[str, str]) -> Status | None:
    text = query.get("status")
    if text is None:
        return None
    try:
        return Status(text)
    except ValueError:
        raise invalid("status", "NOT_ALLOWED", f"It must be one of {', '.join(Status)}.") from None


async def _find_requested(tx: Tx, request: Request) -> Subscription:
    """The subscription whose id is in the path of the request."""
    row_id = SUBSCRIPTION.decode(request.references[0])
    subscription = None if row_id is None else await find_subscription(tx, request.caller.organization_id, row_id)
    if subscription is None:
        raise SubscriptionNotFound("The organization has no subscription with this id.")
    return subscription


def _respond_to_opt_in(result: OptInResult, caller: Caller) -> ApiResponse:
    subscription, outcome = result.subscription, result.outcome.value
    automation = AutomationOut(result.automation)
    out: wire.OptInOut | wire.OptInReceipt
    if caller.is_ingest_only:
        out = wire.OptInReceipt(_receipt(subscription, names_number=True), outcome, automation)
    else:
        out = wire.OptInOut(subscription_out(subscription), outcome, automation)
    return ApiResponse(201 if result.outcome is Outcome.CREATED else 200, encode(out))


def _respond_to_opt_out(result: OptOutResult, request: Request) -> ApiResponse:
    latest, outcome, automation = result.subscription, result.outcome.value, AutomationOut("not_applicable")
    out: wire.OptOutOut | wire.OptOutReceipt
    if request.caller.is_ingest_only:
        withdrawal: Withdrawal = request.command
        receipt_of = partial(_receipt, names_number=withdrawal.phone_number is not None)
        out = wire.OptOutReceipt(
            receipt_of(latest), [receipt_of(each) for each in result.subscriptions], outcome, automation
        )
    else:
        withdrawn = [subscription_out(each) for each in result.subscriptions]
        out = wire.OptOutOut(subscription_out(latest), withdrawn, outcome, automation)
    # The server sends the response once no text to the numbers in `concerns` is being sent.
    return ApiResponse(200, encode(out), number_hashes=result.number_hashes)


def _receipt(subscription: Subscription, *, names_number: bool) -> wire.SubscriptionReceipt:
    """The short response to an API key that may write but not read; it contains the phone number only if the request
    named it."""
    state = subscription.state
    number = state.phone_number if names_number and state.phone_number is not None else msgspec.UNSET
    return wire.SubscriptionReceipt(SUBSCRIPTION.encode(subscription.id), state.status.value, number)


def _verdict_out(verdict: ConsentVerdict) -> wire.VerdictOut:
    profile, state = verdict.profile, None if verdict.subscription is None else verdict.subscription.state
    since = None if state is None else state.unsubscribed_at or state.consented_at
    return wire.VerdictOut(
        phone_number=verdict.phone_number,
        profile=None if profile is None else wire.LinkedProfileOut(PROFILE.encode(profile.id), profile.external_id),
        may_text=verdict.reason is Reason.SUBSCRIBED,
        status=None if state is None else state.status.value,
        since=format_optional_timestamp(since),
        reason=verdict.reason.value,
    )


def _entry_out(entry: LedgerEntry) -> wire.EntryOut:
    payload = _NULL_JSON if entry.payload is None else msgspec.Raw(entry.payload.encode())
    return wire.EntryOut(**{**entry_as_json(entry), "payload": payload})


FILTERS = (
    Parameter(
        "phone_number",
        {"type": "string", "pattern": NUMBER_PATTERN.replace(r"^\+", "^[+ ]"), "format": "phone-number"},
        "Only the subscription of this number. A leading space is read as the plus it was.",
    ),
    Parameter(
        "profile_id",
        {"type": "string", **REFERENCE_SCHEMA},
        "Only subscriptions linked to this profile, by its `external_id` or its `prof_` id.",
    ),
    Parameter(
        "status",
        {"type": "string", "enum": ["SUBSCRIBED", "UNSUBSCRIBED"]},
        "Only subscriptions with this status.",
    ),
)

OPT_OUT = "optOut"
CHECK = "checkSubscriptions"

ROUTES: tuple[Route, ...] = (
    WriteRoute(
        path="/v1/subscriptions/opt-in",
        operation_id="optIn",
        tag="Subscriptions",
        summary="Record a consent",
        description="Events of a number are ordered by their own time, not by their arrival: a consent that is older "
        "than a known event of the number joins the history only (`superseded`). A resync that leaves out the proof, "
        "the profile or the store keeps them. Without `profile_id` the number is linked to the only profile that has "
        "it.",
        body=wire.OptInIn,
        responses={201: wire.OptInOut, 200: wire.OptInOut},
        receipts={201: wire.OptInReceipt, 200: wire.OptInReceipt},
        errors=(ValidationError, InvalidPhoneNumber, ConsentedAtInFuture, ProfileNotFound, StoreNotFound),
        examples={
            "loyalty_card": {
                "phone_number": "+33612345678",
                "consent_source": "LOYALTY_PROGRAM",
                "consented_at": "2026-03-02T10:30:00+01:00",
                "consent_proof": {
                    "terms_url": "https://shop.example/terms",
                    "terms_version": "2026-01",
                    "source_text": "I would like to receive offers by SMS.",
                },
            }
        },
        prepare=prepare_opt_in,
        run=run_opt_ins,
    ),
    WriteRoute(
        path="/v1/subscriptions/opt-out",
        operation_id=OPT_OUT,
        tag="Subscriptions",
        summary="Withdraw a consent",
        description="By `phone_number`, or by `profile_id` for every number linked to the profile (its own number if "
        "none is). With both, the number decides and must be linked to the profile. An unknown number is recorded as "
        "a do-not-contact entry, which no older consent can revive.",
        body=wire.OptOutBody,
        responses={200: wire.OptOutOut},
        receipts={200: wire.OptOutReceipt},
        errors=(ValidationError, InvalidPhoneNumber, ProfileNotFound, SubscriptionNotFound),
        examples={"stop": {"phone_number": "+33612345678", "reason": "Asked at the till", "source": "POS"}},
        prepare=prepare_opt_out,
        run=run_opt_outs,
        wait_s_max=LONG_WAIT_S_MAX,
    ),
    QueryRoute(
        path="/v1/subscriptions/check",
        operation_id=CHECK,
        tag="Subscriptions",
        summary="Ask who may be texted",
        description="For up to 500 numbers or profiles, in order: whether a text may go there, since when and why. A "
        "profile is judged by its subscribed number that was consented last, else by its latest withdrawal. It only "
        "reads: an `Idempotency-Key` is ignored. Each item costs one request of the rate limit.",
        body=wire.CheckIn,
        responses={200: wire.CheckOut},
        errors=(ValidationError,),
        examples={"two": {"items": [{"phone_number": "+33612345678"}, {"profile_id": "CUST-1042"}]}},
        prepare=prepare_check,
        handle=handle_check,
        cost=lambda body: len(body.items),
    ),
    ReadRoute(
        path="/v1/subscriptions",
        operation_id="listSubscriptions",
        tag="Subscriptions",
        summary="List subscriptions",
        description="Subscriptions in the order of their creation, page by page; with `updated_from` in the order of "
        "their last change.",
        parameters=(*PAGE_PARAMETERS, CHANGES_PARAMETER, *FILTERS),
        responses={200: wire.SubscriptionPageOut},
        errors=(ValidationError, InvalidPhoneNumber, InvalidCursor, ProfileNotFound),
        handle=handle_list,
    ),
    ReadRoute(
        path="/v1/subscriptions/{subscription_id}",
        takes_external_ids=False,
        operation_id="getSubscription",
        tag="Subscriptions",
        summary="Read a subscription",
        responses={200: wire.SubscriptionOut},
        errors=(SubscriptionNotFound,),
        handle=handle_subscription,
    ),
    ReadRoute(
        path="/v1/subscriptions/{subscription_id}/history",
        takes_external_ids=False,
        operation_id="listSubscriptionHistory",
        tag="Subscriptions",
        summary="Read the consent history of a subscription",
        description="Every consent event of the number in order of arrival, superseded ones included. Each entry is "
        "chained to the one before it by its hash; the content of erased entries is gone, and the chain still holds.",
        parameters=PAGE_PARAMETERS,
        responses={200: wire.HistoryPageOut},
        errors=(ValidationError, InvalidCursor, SubscriptionNotFound),
        handle=handle_history,
    ),
)
