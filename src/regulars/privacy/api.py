"""The API route that erases a person."""

from collections.abc import Sequence
from functools import partial
from uuid import UUID

from regulars.accounts.audit.log import key_actor, record
from regulars.http.request import ApiResponse, Request
from regulars.http.route import LONG_WAIT_S_MAX, Route, WriteRoute
from regulars.kit.db import Tx
from regulars.kit.errors import ApiError
from regulars.kit.ids import PROFILE, Reference, read_reference
from regulars.privacy.erase import ErasedProfile, erase_profiles
from regulars.privacy.erasure_log import ErasureLog
from regulars.profiles.errors import ProfileNotFound

# An erasure locks its profile while it searches the API responses that are stored for retries, for about a second.
ERASURES_PER_BATCH_MAX = 1


def prepare_erasure(request: Request) -> Reference:
    return read_reference(PROFILE, request.references[0])


async def run_erasures(
    tx: Tx, organization_id: UUID, requests: Sequence[Request], *, log: ErasureLog | None = None
) -> list[ApiResponse | ApiError]:
    references = [request.command for request in requests]
    # All requests of a batch belong to one organization, so they have the same secret.
    secret = requests[0].caller.secret
    outcomes = await erase_profiles(tx, organization_id, references, secret=secret, log=log)
    for request, outcome in zip(requests, outcomes, strict=True):
        if isinstance(outcome, ErasedProfile):
            actor = key_actor(request.caller.api_key_id)
            await record(tx, organization_id, actor, "customer.erase", PROFILE.encode(outcome.profile_id))
    # The server sends the response once no text to the numbers in `concerns` is being sent.
    return [
        ApiResponse(204, b"", number_hashes=outcome.number_hashes) if isinstance(outcome, ErasedProfile) else outcome
        for outcome in outcomes
    ]


ERASE = "eraseProfile"


def routes(log: ErasureLog) -> tuple[Route, ...]:
    return (
        WriteRoute(
            method="DELETE",
            path="/v1/profiles/{profile_id}",
            operation_id=ERASE,
            tag="Profiles",
            summary="Erase a profile",
            description="Erases the person for good: the profile, its attributes and the content of its consent "
            "history go. Sales stay and become anonymous, so totals do not change. Each of the person's numbers stays "
            "on a list of keyed hashes that are not to be contacted, so an older consent cannot bring it back.",
            takes_ingest_keys=False,
            responses={204: None},
            errors=(ProfileNotFound,),
            prepare=prepare_erasure,
            run=partial(run_erasures, log=log),
            writes_per_batch_max=ERASURES_PER_BATCH_MAX,
            wait_s_max=LONG_WAIT_S_MAX,
        ),
    )
