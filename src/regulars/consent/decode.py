"""From the bytes of a request, or of a line of a file, to a valid consent or withdrawal."""

from datetime import datetime

import msgspec

from regulars.consent.ledger import Origin
from regulars.consent.model import Proof
from regulars.consent.opt_in import Consent
from regulars.consent.opt_out import Withdrawal
from regulars.consent.phone import read_consent_number
from regulars.consent.wire import OptInIn, OptOutIn, ProofIn
from regulars.kit.clock import parse_timestamp
from regulars.kit.errors import invalid
from regulars.kit.ids import PROFILE, Reference, read_reference
from regulars.kit.json import decode
from regulars.kit.text import check_reference

_opt_in_decoder = msgspec.json.Decoder(OptInIn)
_opt_out_decoder = msgspec.json.Decoder(OptOutIn)


def decode_opt_in(body: bytes, *, origin: Origin) -> Consent:
    """Decode and validate one consent, or raise the refusal it deserves."""
    sent = decode(_opt_in_decoder, body)
    return Consent(
        phone_number=read_consent_number(sent.phone_number),
        source=sent.consent_source,
        consented_at=_read_timestamp(sent.consented_at, field="consented_at"),
        proof=_read_proof(sent.consent_proof),
        profile=None if sent.profile_id is None else read_profile(sent.profile_id),
        origin=origin,
    )


def decode_opt_out(body: bytes, *, origin: Origin) -> Withdrawal:
    """Decode and validate one withdrawal, or raise the refusal it deserves."""
    sent = decode(_opt_out_decoder, body)
    if sent.phone_number is None and sent.profile_id is None:
        raise invalid("phone_number", "REQUIRED", "Either phone_number or profile_id is required.")
    return Withdrawal(
        phone_number=None if sent.phone_number is None else read_consent_number(sent.phone_number),
        profile=None if sent.profile_id is None else read_profile(sent.profile_id),
        unsubscribed_at=None
        if sent.unsubscribed_at is None
        else _read_timestamp(sent.unsubscribed_at, field="unsubscribed_at"),
        reason=sent.reason,
        source=sent.source,
        origin=origin,
    )


def _read_timestamp(text: str, *, field: str) -> datetime:
    try:
        return parse_timestamp(text)
    except ValueError as error:
        raise invalid(field, "FORMAT", f"Not a timestamp: {error}.") from None


def read_profile(text: str) -> Reference:
    return read_reference(PROFILE, check_reference(text, field="profile_id"))


def _read_proof(sent: ProofIn | None) -> Proof | None:
    """A proof with nothing in it says as much as none."""
    if sent is None:
        return None
    if sent.terms_url is not None and any(character.isspace() for character in sent.terms_url):
        raise invalid("consent_proof.terms_url", "FORMAT", "It must be an http or https URL without white space.")
    proof = Proof(sent.terms_url, sent.terms_version, sent.source_text)
    return None if proof == Proof() else proof
