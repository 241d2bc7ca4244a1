"""What each code means to the person who meets it.

The `type` of every refusal points at `/docs/errors`; that page and `docs/errors.md` are both made from the classes of
the refusals that the routes may give.
"""

from collections.abc import Sequence
from typing import Final

from regulars.http.refusals import refusals_of_all
from regulars.http.route import Route
from regulars.kit.errors import ApiError

INTRODUCTION: Final = (
    "Every refusal under `/v1` has the media type `application/problem+json` (RFC 9457) and these members: `type` (a"
    " link to this page), `title`, `status`, `detail` (a sentence about this very request), `code`, `request_id` (the"
    " same as the `X-Request-Id` header) and, for validation, `errors` with the `field`, `code` and `message` of each"
    " field. Decide on `code`: it never changes its meaning. New codes may appear within `/v1`; treat one you do not"
    " know by its status."
)


def anchor(error: type[ApiError]) -> str:
    return error.code.lower().replace("_", "-")


def render_markdown(routes: Sequence[Route]) -> str:
    entries = [
        f'<a id="{anchor(error)}"></a>\n\n## {error.code}\n\n{error.status}: {error.title}.\n\n'
        f"- **Cause.** {error.cause}\n- **Fix.** {error.fix}\n- **Retry.** {error.retry}"
        for error in refusals_of_all(routes)
    ]
    return "\n\n".join(["# Errors", INTRODUCTION, *entries]) + "\n"
