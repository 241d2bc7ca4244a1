"""Make the certificate of consent: the ledger entries of one phone number, and how a reader verifies their hashes."""

import dataclasses
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import msgspec

from regulars.consent.find import find_subscription
from regulars.consent.history import ConsentAtTime, Judgement, find_consent_at, list_entries
from regulars.consent.model import LedgerEntry
from regulars.consent.subscription import Subscription, format_optional_timestamp
from regulars.consent.verify import Verification, verify_subscription
from regulars.kit.clock import format_timestamp
from regulars.kit.db import Tx
from regulars.kit.ids import PROFILE, SUBSCRIPTION

# A certificate lists at most this many entries; its verification reads all of them.
ENTRIES_MAX: Final = 5_000
HOW_TO_VERIFY: Final = (
    (
        "The first entry's previous_hash is SHA-256 of the text 'regulars consent ledger', a zero byte, and the 16 "
        "bytes each of the ids of organization and subscription."
    ),
    "Each commitment is HMAC-SHA256 of the payload's exact text under its salt.",
    (
        "Each hash is SHA-256 of the JSON array [previous_hash, sequence, kind, outcome, effective_at, claimed_at, "
        "received_at, commitment], without spaces, hashes in hexadecimal, times in UTC with milliseconds."
    ),
    "Each previous_hash is the hash of the entry before it; where a payload was erased, the chain still verifies.",
)


class Certificate(msgspec.Struct, frozen=True, kw_only=True):
    subscription: Subscription
    entries: list[LedgerEntry]
    verification: Verification
    # Whether a text was allowed at the time that the user asked about; None if the user asked about no time.
    answer: ConsentAtTime | None
    made_at: datetime
    organization_id: UUID


async def make_certificate(
    tx: Tx, organization_id: UUID, subscription_id: UUID, *, at: datetime | None
) -> Certificate | None:
    """Read and verify the ledger of one number, and find whether a text was allowed at the time `at`. None if there is
    no such subscription."""
    subscription = await find_subscription(tx, organization_id, subscription_id)
    verification = await verify_subscription(tx, organization_id, subscription_id)
    if subscription is None or verification is None:
        return None
    entries = await list_entries(tx, organization_id, subscription_id, limit=ENTRIES_MAX)
    answer = None if at is None else await find_consent_at(tx, organization_id, subscription_id, at)
    return Certificate(
        subscription=subscription,
        entries=entries,
        verification=verification,
        answer=answer,
        made_at=tx.now,
        organization_id=organization_id,
    )


def certificate_as_json(certificate: Certificate, *, organization_name: str) -> dict[str, Any]:
    """The certificate as a document that the user downloads."""
    subscription = certificate.subscription
    state, profile = subscription.state, subscription.profile
    verification = certificate.verification
    return {
        "certificate": "consent to be texted",
        "organization": {"id": str(certificate.organization_id), "name": organization_name},
        "made_at": format_timestamp(certificate.made_at),
        "subscription": {
            "id": SUBSCRIPTION.encode(subscription.id),
            "uuid": str(subscription.id),
            "phone_number": state.phone_number,
            "status": state.status.value,
            "consent_source": state.source,
            "consented_at": format_optional_timestamp(state.consented_at),
            "unsubscribed_at": format_optional_timestamp(state.unsubscribed_at),
            "consent_proof": None if state.proof is None else dataclasses.asdict(state.proof),
            "profile": None
            if profile is None
            else {"id": PROFILE.encode(profile.id), "external_id": profile.external_id},
        },
        "question": None if certificate.answer is None else _answer_as_json(certificate.answer),
        "verification": {
            "is_whole": verification.fault is None,
            "fault": verification.fault,
            "fault_sequence": verification.fault_sequence,
            "entries": verification.entries,
            "payloads_erased": verification.payloads_erased,
        },
        "ledger": [entry_as_json(entry) for entry in certificate.entries],
        "how_to_verify": list(HOW_TO_VERIFY),
    }


def _answer_as_json(answer: ConsentAtTime) -> dict[str, Any]:
    return {
        "at": format_timestamp(answer.at),
        "as_recorded_then": _judgement_as_json(answer.recorded),
        "as_known_now": _judgement_as_json(answer.known),
    }


def _judgement_as_json(judgement: Judgement) -> dict[str, Any]:
    return {
        "may_text": judgement.may_text,
        "decided_by_sequence": None if judgement.entry is None else judgement.entry.sequence,
    }


def entry_as_json(entry: LedgerEntry) -> dict[str, Any]:
    return {
        "sequence": entry.sequence,
        "kind": entry.kind,
        "outcome": entry.outcome,
        "effective_at": format_timestamp(entry.effective_at),
        # The time that the API caller stated.
        "claimed_at": format_optional_timestamp(entry.claimed_at),
        "received_at": format_timestamp(entry.received_at),
        "commitment": entry.commitment.hex(),
        "previous_hash": entry.previous_hash.hex(),
        "hash": entry.hash.hex(),
        "salt": None if entry.salt is None else entry.salt.hex(),
        # The stored string, not decoded JSON: the commitment is a hash of exactly these bytes.
        "payload": entry.payload,
    }
