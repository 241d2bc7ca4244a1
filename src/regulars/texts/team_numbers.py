"""Send test texts to the phone number of a member of the retailer's team, who verified the number with a code.

A test needs no opt-in and does not count against the frequency caps, but a number that withdrew, is suppressed or was
erased gets no test and no code. The code is derived from an id and inserted only when its text is sent, so that no page
shows it: a team member who can read all messages cannot verify the number of another person.
"""

import hashlib
import hmac
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple, Protocol
from uuid import UUID

from regulars.consent.chain import hash_number
from regulars.consent.numbers import lock_consents
from regulars.kit.arrays import Blobs
from regulars.kit.db import Tx
from regulars.kit.ids import new_uuid
from regulars.links.origin_kind import OriginKind
from regulars.texts.errors import SettingRefused
from regulars.texts.find import find_suppressed
from regulars.texts.model import TextRow
from regulars.texts.request import PlacedOrder, TextOrder, request_texts
from regulars.texts.settings.store import Texting, lock_texting
from regulars.texts.template import ATTRIBUTE_PREFIX, TextVariants, choose_text, fill_defaults, parse_template

# How many test texts and codes an organization may request within a day.
TESTS_MAX: Final = 20
TESTS_WITHIN: Final = timedelta(days=1)
CODE_ATTEMPTS_MAX: Final = 5
# How long a code is valid, and how long a test text may wait to be sent.
EXPIRES_AFTER: Final = timedelta(minutes=10)
# Stands for the code in the stored text.
CODE_PLACEHOLDER: Final = "XXXXXX"
CODE_STEP: Final = "code"


class TeamNumberRow(NamedTuple):
    phone_number: str
    number_hash: bytes
    provider: str
    # The verification code is derived from this id, and valid until `code_until`.
    code_id: UUID
    code_until: datetime
    # How often a code was entered.
    attempts: int
    verified_at: datetime | None


@dataclass(frozen=True, slots=True)
class TeamNumber:
    phone_number: str
    is_verified: bool


async def find_team_number(tx: Tx, user_id: UUID, *, texting: Texting) -> TeamNumber | None:
    """The number of a team member; a number verified with another provider does not count as verified."""
    row = await _find_row(tx, texting.organization_id, user_id)
    return None if row is None else TeamNumber(row.phone_number, _is_verified(row, texting))


async def request_code(tx: Tx, user_id: UUID, phone_number: str, *, texting: Texting) -> PlacedOrder:
    """Text a code to a number. The caller has locked the settings, so two requests never exceed the limit."""
    number_hash = hash_number(texting.secret, phone_number)
    await _check_allowed(tx, number_hash, texting)
    code_id = new_uuid()
    until = tx.now + EXPIRES_AFTER
    row = TeamNumberRow(phone_number, number_hash, texting.provider, code_id, until, 0, None)
    await _upsert_row(tx, texting.organization_id, user_id, row)
    body = f"{CODE_PLACEHOLDER} is your code for test texts."
    return await _request_test(tx, texting, origin_id=code_id, step=CODE_STEP, text=body, phone_number=phone_number)


async def verify_code(tx: Tx, user_id: UUID, code: str, *, texting: Texting) -> bool:
    """Whether the code is right. The caller has locked the settings, and commits also after a wrong code."""
    row = await _find_row(tx, texting.organization_id, user_id)
    if row is None or row.provider != texting.provider or tx.now >= row.code_until:
        raise SettingRefused("The code has expired. Request a new one.")
    if row.attempts >= CODE_ATTEMPTS_MAX:
        raise SettingRefused("Too many wrong codes. Request a new one.")
    is_right = hmac.compare_digest(make_code(texting.secret, row.code_id).encode(), code.strip().encode())
    verified_at = tx.now if is_right else row.verified_at
    changed = row._replace(attempts=row.attempts + 1, verified_at=verified_at)
    await _upsert_row(tx, texting.organization_id, user_id, changed)
    return is_right


class Tester(Protocol):
    """The signed-in team member."""

    @property
    def id(self) -> UUID: ...
    @property
    def name(self) -> str: ...


async def send_test_text(
    tx: Tx, organization_id: UUID, tester: Tester, content: str | TextVariants, *, language: str
) -> PlacedOrder:
    """Send a text that is being edited to the number of the signed-in team member. `language` chooses the variant."""
    texting = await lock_texting(tx, organization_id)
    if texting is None:
        raise SettingRefused("There is no such organization.")
    text = write_test(content, name=tester.name, brand=texting.brand, language=language)
    return await send_test(tx, tester.id, text, texting=texting)


async def send_test(tx: Tx, user_id: UUID, text: str, *, texting: Texting) -> PlacedOrder:
    """Send a text to the verified number of a team member. The caller has locked the settings `texting`."""
    row = await _find_row(tx, texting.organization_id, user_id)
    if row is None or not _is_verified(row, texting):
        raise SettingRefused("Verify your own number first; tests are sent to no other number.")
    await _check_allowed(tx, row.number_hash, texting)
    return await _request_test(tx, texting, origin_id=new_uuid(), step="test", text=text, phone_number=row.phone_number)


def write_test(content: str | TextVariants, *, name: str, brand: str, language: str) -> str:
    """The text of a test, without data of a customer: the name is that of the team member, and other variables are
    replaced by their default or their label. `language` chooses the variant."""
    first, _, last = name.partition(" ")
    values: dict[str, str | None] = {"brand": brand, "profile.first_name": first, "profile.last_name": last}
    if isinstance(content, TextVariants):
        values[ATTRIBUTE_PREFIX + content.attribute] = language
    return fill_defaults(parse_template(choose_text(content, values)), values)


def make_code(secret: bytes, code_id: UUID) -> str:
    digest = hmac.digest(secret, b"regulars test number\0" + code_id.bytes, hashlib.sha256)
    return f"{int.from_bytes(digest[:8], 'big') % 10 ** len(CODE_PLACEHOLDER):0{len(CODE_PLACEHOLDER)}d}"


def insert_code(text: TextRow, secret: bytes) -> str:
    """The body as it is sent; the verification code is inserted only now."""
    if text.origin_kind != OriginKind.TEST or text.step != CODE_STEP:
        return text.body
    return text.body.replace(CODE_PLACEHOLDER, make_code(secret, text.origin_id), 1)


def _is_verified(row: TeamNumberRow, texting: Texting) -> bool:
    return row.verified_at is not None and row.provider == texting.provider


async def _check_allowed(tx: Tx, number_hash: bytes, texting: Texting) -> None:
    consents = await lock_consents(tx, texting.organization_id, [number_hash])
    consent = consents.get(number_hash)
    is_suppressed = await find_suppressed(tx, texting.organization_id, [number_hash])
    if is_suppressed or (consent is not None and not consent.is_subscribed):
        raise SettingRefused("This number asked to stop or was erased, so it gets no text.")
    if await _count_tests(tx, texting.organization_id, since=tx.now - TESTS_WITHIN) >= TESTS_MAX:
        raise SettingRefused(f"At most {TESTS_MAX} test texts and codes in 24 hours; try again later.")


async def _request_test(
    tx: Tx, texting: Texting, *, origin_id: UUID, step: str, text: str, phone_number: str
) -> PlacedOrder:
    order = TextOrder(
        origin_kind=OriginKind.TEST,
        origin_id=origin_id,
        step=step,
        rendered=text,
        phone_number=phone_number,
        expires_at=tx.now + EXPIRES_AFTER,
    )
    [placed] = await request_texts(tx, texting.organization_id, [order], texting=texting)
    return placed


async def _upsert_row(tx: Tx, organization_id: UUID, user_id: UUID, row: TeamNumberRow) -> None:
    await tx.execute(
        """
        INSERT INTO test_numbers (
            organization_id, user_id, phone_number, number_hash, provider, code_id, code_until, attempts, verified_at
        )
        VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)
        ON CONFLICT (organization_id, user_id) DO UPDATE
        SET phone_number = EXCLUDED.phone_number, number_hash = EXCLUDED.number_hash, provider = EXCLUDED.provider,
            code_id = EXCLUDED.code_id, code_until = EXCLUDED.code_until, attempts = EXCLUDED.attempts,
            verified_at = EXCLUDED.verified_at
        """,
        (organization_id, user_id, *row),
    )


async def _find_row(tx: Tx, organization_id: UUID, user_id: UUID) -> TeamNumberRow | None:
    return await tx.fetch_first(
        TeamNumberRow,
        "SELECT {columns} FROM test_numbers WHERE organization_id = %s AND user_id = %s",
        (organization_id, user_id),
    )


async def delete_team_numbers(tx: Tx, organization_id: UUID, number_hashes: Collection[bytes]) -> None:
    await tx.execute(
        "DELETE FROM test_numbers WHERE organization_id = %s AND number_hash = ANY (%s::bytea[])",
        (organization_id, Blobs(number_hashes)),
    )


async def _count_tests(tx: Tx, organization_id: UUID, *, since: datetime) -> int:
    """Count the texts to team members: test texts and codes."""
    return await tx.fetch_count(
        "SELECT count(*) FROM texts WHERE organization_id = %s AND origin_kind = 'test' AND created_at > %s",
        (organization_id, since),
    )
