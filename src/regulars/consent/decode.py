"""Decode opt-ins, opt-outs and consent checks from the JSON of a request body; an import decodes its rows here too."""

from functools import partial

import msgspec

from regulars.consent import wire
from regulars.consent.check import CheckItem, CheckRequest
from regulars.consent.errors import InvalidPhoneNumber
from regulars.consent.ledger import EventOrigin
from regulars.consent.model import Proof
from regulars.consent.opt_in import Consent
from regulars.consent.opt_out import Withdrawal
from regulars.consent.phone import read_lenient_number, read_opt_in_number
from regulars.kit.body_reader import Reader
from regulars.kit.ids import PROFILE, STORE, Reference
from regulars.kit.text import read_sent_reference, read_timestamp

_opt_in_reader: Reader[wire.OptInIn] = Reader(wire.OptInIn)
_check_reader: Reader[wire.CheckIn] = Reader(wire.CheckIn)
_opt_out_reader: Reader[wire.OptOutIn] = Reader(wire.OptOutBody)


def decode_opt_in(body: bytes, *, origin: EventOrigin) -> Consent:
    """Decode and validate one consent, or raise an `ApiError`. `origin` says which request it came with."""
    return _opt_in_reader.read(body, partial(_make_consent, origin))


def _make_consent(origin: EventOrigin, sent: wire.OptInIn, ignored: tuple[str, ...]) -> Consent:
    return Consent(
        phone_number=read_opt_in_number(sent.phone_number, field="phone_number"),
        source=sent.consent_source,
        consented_at=read_timestamp(sent.consented_at, field="consented_at"),
        proof=None if sent.consent_proof is None else _read_proof(sent.consent_proof),
        profile=None if sent.profile_id is None else read_profile_reference(sent.profile_id),
        store=None if sent.store_id is None else _read_store(sent.store_id),
        origin=origin,
        ignored=ignored,
    )


def decode_opt_out(body: bytes, *, origin: EventOrigin, default_country: str | None) -> Withdrawal:
    """Decode and validate one withdrawal, or raise an `ApiError`."""
    arguments = {"default_country": default_country}
    return _opt_out_reader.read(body, partial(_make_withdrawal, origin, default_country), check_arguments=arguments)


def _make_withdrawal(
    origin: EventOrigin, default_country: str | None, sent: wire.OptOutIn, ignored: tuple[str, ...]
) -> Withdrawal:
    wire.check_named(msgspec.structs.asdict(sent), field="")
    number, timestamp = sent.phone_number, sent.unsubscribed_at
    return Withdrawal(
        phone_number=None if number is None else read_lenient_number(number, default_country=default_country),
        profile=None if sent.profile_id is None else read_profile_reference(sent.profile_id),
        unsubscribed_at=None if timestamp is None else read_timestamp(timestamp, field="unsubscribed_at"),
        reason=sent.reason,
        source=sent.source,
        origin=origin,
        ignored=ignored,
    )


def decode_check(body: bytes, *, default_country: str | None) -> CheckRequest:
    """Decode a check. A number that is invalid does not fail the request: the response says so for its item."""
    return _check_reader.read(body, partial(_make_check_request, default_country))


def _make_check_request(default_country: str | None, sent: wire.CheckIn, ignored: tuple[str, ...]) -> CheckRequest:
    for index, item in enumerate(sent.items):
        wire.check_one_named(msgspec.structs.asdict(item), field=f"items[{index}]")
    items = [
        CheckItem(phone_number=_read_number(item.phone_number or "", default_country))
        if item.profile_id is None
        else CheckItem(profile=read_profile_reference(item.profile_id))
        for item in sent.items
    ]
    return CheckRequest(items, ignored)


def _read_number(text: str, default_country: str | None) -> str | None:
    try:
        return read_lenient_number(text, default_country=default_country)
    except InvalidPhoneNumber:
        return None


def read_profile_reference(text: str) -> Reference:
    return read_sent_reference(PROFILE, text, field="profile_id")


def _read_store(text: str) -> Reference:
    return read_sent_reference(STORE, text, field="store_id")


def _read_proof(sent: wire.ProofIn) -> Proof | None:
    """The proof, or None if all its fields are empty."""
    if sent.terms_url is not None:
        wire.check_url(sent.terms_url, field="consent_proof.terms_url")
    proof = Proof(sent.terms_url, sent.terms_version, sent.source_text)
    return None if proof == Proof() else proof
