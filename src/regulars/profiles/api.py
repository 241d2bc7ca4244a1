"""The API routes `/v1/profiles`: create or update profiles, one or a batch, list and read them, and set attributes."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated
from uuid import UUID

import msgspec
from msgspec import Meta

from regulars.http.batch import Batch, BatchResult, batch_response, body_meta, items_meta, read_batch
from regulars.http.parameters import CHANGES_PARAMETER, PAGE_PARAMETERS, Parameter
from regulars.http.request import ApiResponse, Caller, Request
from regulars.http.route import BatchRoute, LookUpRoute, ReadRoute, Route, WriteRoute
from regulars.kit.changes import read_start, scope_of_changes
from regulars.kit.db import Tx
from regulars.kit.errors import ApiError, InvalidCursor, ReservedExternalId, ValidationError, invalid
from regulars.kit.ids import PROFILE, ByExternalId, read_reference
from regulars.kit.json import STRING_CHARACTERS_MAX, encode
from regulars.kit.pagination import Page, read_limit
from regulars.kit.text import check_reference
from regulars.kit.wire import REFERENCE_SCHEMA
from regulars.profiles.errors import ProfileNotFound
from regulars.profiles.find import list_profiles, read_profiles
from regulars.profiles.model import (
    AttributeChanges,
    Profile,
    ProfileUpsert,
    read_phone,
)
from regulars.profiles.wire import (
    ProfileIdsOut,
    ProfileIn,
    ProfileOut,
    WrappedAttributesIn,
    decode_attributes,
    decode_profile,
    sort_attributes,
    to_profile_ids_out,
    to_profile_out,
)
from regulars.profiles.write import UpsertedProfile, set_attributes, upsert_profiles


class ProfilePageOut(Page[ProfileOut], frozen=True):
    pass


class AttributesOut(msgspec.Struct):
    profile: ProfileIdsOut
    attributes: Annotated[dict[str, str], Meta(description="All attributes of the profile, ordered by key.")]


class ProfileReceipt(msgspec.Struct):
    """A profile by its ids; `external_id` only if the caller named the profile by it."""

    id: str
    external_id: str | msgspec.UnsetType = msgspec.UNSET


class AttributesReceipt(msgspec.Struct):
    profile: ProfileReceipt
    attributes: Annotated[dict[str, str], Meta(description="The attributes that were sent, ordered by key.")]


class ProfileBatchIn(msgspec.Struct):
    items: Annotated[list[ProfileIn], items_meta("Profiles", "/v1/profiles")]


class ProfileResult(BatchResult, frozen=True, kw_only=True):
    body: Annotated[msgspec.Raw, body_meta(ProfileOut, ProfileReceipt)]


class ProfileBatchOut(msgspec.Struct):
    results: Annotated[list[ProfileResult], Meta(description="One result for each item, in the same order.")]


def prepare_profile(request: Request) -> ProfileUpsert:
    return decode_profile(request.body, default_country=request.caller.default_country)


async def run_profiles(tx: Tx, organization_id: UUID, requests: Sequence[Request]) -> list[ApiResponse | ApiError]:
    outcomes = await upsert_profiles(tx, organization_id, [request.command for request in requests])
    return [_respond(outcome, request.caller) for outcome, request in zip(outcomes, requests, strict=True)]


def prepare_batch(request: Request) -> Batch[ProfileUpsert]:
    return read_batch(request.body, partial(decode_profile, default_country=request.caller.default_country))


async def run_batches(tx: Tx, organization_id: UUID, requests: Sequence[Request]) -> list[ApiResponse | ApiError]:
    upserts = [upsert for request in requests for upsert in request.command.accepted]
    outcomes = iter(await upsert_profiles(tx, organization_id, upserts))
    return [
        batch_response(
            [
                _respond(next(outcomes), request.caller) if isinstance(item, ProfileUpsert) else item
                for item in request.command.items
            ],
            request,
        )
        for request in requests
    ]


def prepare_attributes(request: Request) -> AttributeChanges:
    return decode_attributes(request.body, read_reference(PROFILE, request.references[0]))


async def run_attributes(tx: Tx, organization_id: UUID, requests: Sequence[Request]) -> list[ApiResponse | ApiError]:
    outcomes = await set_attributes(tx, organization_id, [request.command for request in requests])
    return [
        outcome if not isinstance(outcome, Profile) else ApiResponse(200, encode(_respond_with(outcome, request)))
        for outcome, request in zip(outcomes, requests, strict=True)
    ]


async def _find(
    tx: Tx, organization_id: UUID, requests: Sequence[Request], *, to_out: Callable[[Profile], msgspec.Struct]
) -> list[ApiResponse | ApiError]:
    references = [read_reference(PROFILE, request.references[0]) for request in requests]
    profiles = await read_profiles(tx, organization_id, references)
    return [
        ApiResponse(200, encode(to_out(profiles[reference])))
        if reference in profiles
        else ProfileNotFound("No profile has this id or external_id.")
        for reference in references
    ]


async def handle_list(tx: Tx, request: Request) -> ApiResponse:
    caller, query = request.caller, request.query
    limit = read_limit(query)
    external_id, phone_number = query.get("external_id"), query.get("phone_number")
    if external_id is not None:
        check_reference(external_id, field="external_id")
    if phone_number is not None:
        if not phone_number.strip() or len(phone_number) > STRING_CHARACTERS_MAX:
            raise invalid("phone_number", "LENGTH", f"It must have 1 to {STRING_CHARACTERS_MAX} characters.")
        # In a query string a plus means a space: a number that begins with a space was sent with a plus.
        text = "+" + phone_number[1:] if phone_number.startswith(" ") else phone_number
        phone_number = read_phone(text, default_country=caller.default_country).number
    scope = scope_of_changes("profiles", query, external_id=external_id, phone_number=phone_number)
    start = await read_start(tx, query, secret=caller.secret, scope=scope)
    profiles = await list_profiles(
        tx,
        caller.organization_id,
        external_id=external_id,
        phone_number=phone_number,
        after=start.after,
        since=start.since,
        limit=limit + 1,
    )
    page, has_more, cursor = start.cut_page(profiles, limit, lambda profile: (profile.updated_at, profile.id))
    return ApiResponse(200, encode(ProfilePageOut([to_profile_out(profile) for profile in page], has_more, cursor)))


def _respond(outcome: UpsertedProfile | ApiError, caller: Caller) -> ApiResponse | ApiError:
    if isinstance(outcome, ApiError):
        return outcome
    profile, is_new = outcome.profile, outcome.change == "created"
    # An ingest-only API key, which may not read, gets the full response only for a new profile, because all data of the
    # profile came with the request.
    if caller.is_ingest_only and not is_new:
        return ApiResponse(200, encode(ProfileReceipt(PROFILE.encode(profile.id), profile.external_id)))
    return ApiResponse(201 if is_new else 200, encode(to_profile_out(profile)))


def _to_attributes_out(profile: Profile) -> AttributesOut:
    return AttributesOut(to_profile_ids_out(profile), sort_attributes(profile.attributes))


def _respond_with(profile: Profile, request: Request) -> AttributesOut | AttributesReceipt:
    """Return all attributes; for an ingest-only API key, only those that the request sent."""
    if not request.caller.is_ingest_only:
        return _to_attributes_out(profile)
    sent: AttributeChanges = request.command
    external_id = profile.external_id if isinstance(sent.reference, ByExternalId) else msgspec.UNSET
    attributes = {key: value for key, value in sent.changes.items() if value is not None}
    return AttributesReceipt(ProfileReceipt(PROFILE.encode(profile.id), external_id), sort_attributes(attributes))


ROUTES: tuple[Route, ...] = (
    WriteRoute(
        path="/v1/profiles",
        operation_id="upsertProfile",
        tag="Profiles",
        summary="Upsert a profile",
        description="Creates the profile with this `external_id`, or updates it: a field left out is unchanged, null "
        "clears it, attributes are merged. A write that changes nothing does not move `updated_at`.",
        body=ProfileIn,
        responses={200: ProfileOut, 201: ProfileOut},
        receipts={200: ProfileReceipt},
        errors=(ValidationError, ReservedExternalId),
        examples={
            "customer": {
                "external_id": "CUST-1042",
                "phone_number": "+33612345678",
                "first_name": "Ada",
                "last_name": "Martin",
                "attributes": {"loyalty_tier": "gold", "birthday": "1990-02-28", "newsletter": "true"},
            },
            "only_the_id": {"external_id": "CUST-1043"},
            "clear_the_phone_number": {"external_id": "CUST-1042", "phone_number": None},
        },
        prepare=prepare_profile,
        run=run_profiles,
    ),
    ReadRoute(
        path="/v1/profiles",
        operation_id="listProfiles",
        tag="Profiles",
        summary="List profiles",
        description="Profiles in the order of their creation, page by page; with `updated_from` in the order of their "
        "last change.",
        parameters=(
            *PAGE_PARAMETERS,
            CHANGES_PARAMETER,
            Parameter(
                "external_id", {"type": "string", **REFERENCE_SCHEMA}, "Only the profile with this `external_id`."
            ),
            Parameter(
                "phone_number",
                {"type": "string", "minLength": 1, "maxLength": STRING_CHARACTERS_MAX, "pattern": r"\S"},
                "Only profiles with this number, however it is written. A leading space is read as the plus it was.",
            ),
        ),
        responses={200: ProfilePageOut},
        errors=(ValidationError, InvalidCursor),
        handle=handle_list,
    ),
    BatchRoute(
        path="/v1/profiles/batch",
        operation_id="upsertProfiles",
        tag="Profiles",
        summary="Upsert up to 500 profiles",
        description="Each item is applied in order, as `POST /v1/profiles` would, and gets its own result: one refused "
        "item does not affect the others. All items that are accepted are committed together. Each item costs one "
        "request of the rate limit.",
        body=ProfileBatchIn,
        responses={200: ProfileBatchOut},
        errors=(ValidationError,),
        examples={
            "two_customers": {
                "items": [
                    {"external_id": "CUST-1042", "first_name": "Ada", "attributes": {"loyalty_tier": "gold"}},
                    {"external_id": "CUST-1043", "phone_number": "+447400123456"},
                ]
            }
        },
        prepare=prepare_batch,
        run=run_batches,
    ),
    LookUpRoute(
        path="/v1/profiles/{profile_id}",
        operation_id="getProfile",
        tag="Profiles",
        summary="Read a profile",
        responses={200: ProfileOut},
        errors=(ProfileNotFound,),
        find=partial(_find, to_out=to_profile_out),
    ),
    WriteRoute(
        path="/v1/profiles/{profile_id}/attributes",
        operation_id="setProfileAttributes",
        tag="Profiles",
        summary="Set attributes of a profile",
        description="Merges attributes into an existing profile and returns all of them. null removes a key. It "
        "never creates a profile, and if one value is refused nothing is applied. The flat map itself is accepted as "
        "a body too; a field `attributes` always means the described form.",
        body=WrappedAttributesIn,
        responses={200: AttributesOut},
        receipts={200: AttributesReceipt},
        errors=(ValidationError, ProfileNotFound),
        examples={
            "wrapped": {"attributes": {"loyalty_tier": "platinum", "points": "1250", "old_tier": None}},
        },
        prepare=prepare_attributes,
        run=run_attributes,
    ),
    LookUpRoute(
        path="/v1/profiles/{profile_id}/attributes",
        operation_id="getProfileAttributes",
        tag="Profiles",
        summary="Read the attributes of a profile",
        responses={200: AttributesOut},
        errors=(ProfileNotFound,),
        find=partial(_find, to_out=_to_attributes_out),
    ),
)
