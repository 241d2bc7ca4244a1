"""What an entry of the ledger says, in words for people; every page that shows one uses these."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import msgspec

from regulars.consent.model import Entry, Kind
from regulars.web import mask
from regulars.web.visit import Visit

SOURCES: Final = {
    "LOYALTY_PROGRAM": "Loyalty programme",
    "POINT_OF_SALE": "Point of sale",
    "WEBSITE": "Website",
    "CHECKOUT": "Checkout",
    "MOBILE_APP": "Mobile app",
    "SMS_KEYWORD": "Reply by text",
    "QR_CODE": "QR code",
    "CALL_CENTER": "Call centre",
    "PAPER_FORM": "Paper form",
    "EVENT": "Event",
    "SOCIAL": "Social network",
    "IMPORT": "Import",
    "OTHER": "Other",
}
TITLES: Final = {
    ("OPT_IN", "created"): "Opted in",
    ("OPT_IN", "resubscribed"): "Opted in again",
    ("OPT_IN", "updated"): "Proof updated",
    ("OPT_IN", "already_subscribed"): "Consent repeated",
    ("OPT_IN", "superseded"): "Opt-in, superseded",
    ("OPT_OUT", "unsubscribed"): "Withdrew",
    ("OPT_OUT", "already_unsubscribed"): "Withdrew again",
    ("OPT_OUT", "superseded"): "Withdrawal, superseded",
    ("ERASURE", "unsubscribed"): "Erased",
    ("ERASURE", "already_unsubscribed"): "Erased",
}
_HASH_SHOWN: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryWords:
    """An entry as it is read: what it did, what was agreed to, where it came from."""

    sequence: int
    title: str
    source: str
    proof: str
    quote: str | None
    origin: str
    effective_at: datetime
    received_at: datetime
    kind: str
    hash: str
    previous_hash: str


def describe(visit: Visit, entry: Entry, keys: Mapping[str, str]) -> EntryWords:
    """`keys` are the names of the API keys by their ids."""
    said: dict[str, Any] = {} if entry.payload is None else msgspec.json.decode(entry.payload)
    source = said.get("consent_source") or said.get("source")
    is_superseded = entry.outcome == "superseded"
    kind = "aside" if is_superseded else "yes" if entry.kind == Kind.OPT_IN else "no"
    return EntryWords(
        sequence=entry.sequence,
        title=title_of(entry),
        source=SOURCES.get(source or "") or mask.text(visit, source) or "",
        proof=_proof(visit, entry, said),
        quote=mask.text(visit, said.get("source_text") or said.get("message") or said.get("reason")),
        origin=_origin(said, keys),
        effective_at=entry.effective_at,
        received_at=entry.received_at,
        kind=kind,
        hash=entry.hash.hex()[:_HASH_SHOWN],
        previous_hash=entry.previous_hash.hex()[:_HASH_SHOWN],
    )


def title_of(entry: Entry) -> str:
    return TITLES.get((entry.kind, entry.outcome), f"{entry.kind}, {entry.outcome}")


def _proof(visit: Visit, entry: Entry, said: Mapping[str, Any]) -> str:
    if entry.payload is None:
        return "The content was erased; the hash of it stays."
    if entry.kind != Kind.OPT_IN:
        return ""
    if version := said.get("terms_version"):
        return f"Terms {mask.text(visit, version)}."
    return "Weak proof: no terms version." if not said.get("source_text") else ""


def _origin(said: Mapping[str, Any], keys: Mapping[str, str]) -> str:
    if said.get("message_id") or said.get("message"):
        return "as a text message"
    if key := said.get("api_key_id"):
        return f"from key {keys.get(key, key)}"
    return ""
