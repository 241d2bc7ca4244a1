"""The error of the API for an unknown profile."""

from regulars.kit.errors import ApiError


class ProfileNotFound(ApiError):
    status, code, title = 404, "PROFILE_NOT_FOUND", "No such profile"
    cause = (
        "No profile of your organization has this `external_id` or `prof_` id; it may have been erased. A reference"
        " with a reserved prefix is only ever looked up as a canonical id."
    )
    fix = (
        "Upsert the profile first. A sale may name a customer you never sent, if it does so by your own `external_id`."
        " If the detail says that the person was erased, do not: stop sending them."
    )
    retry = "Yes, after the profile exists, with a new Idempotency-Key."


def person_erased() -> ProfileNotFound:
    """Return the error for a retried request whose stored response was about a person who has been erased since."""
    return ProfileNotFound("The person this answer spoke of was erased, and nothing ran again; stop sending them.")
