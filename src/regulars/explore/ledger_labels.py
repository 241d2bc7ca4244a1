"""Labels for entries of the consent ledger (opt-ins, opt-outs and erasures), used by all pages."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import msgspec

from regulars.conditions.labels import SOURCES
from regulars.consent.model import Kind, LedgerEntry
from regulars.web import mask
from regulars.web.visit import Visit

TITLES: Final = {
    ("OPT_IN", "created"): "Opted in",
    ("OPT_IN", "resubscribed"): "Opted in again",
    ("OPT_IN", "updated"): "Proof updated",
    ("OPT_IN", "already_subscribed"): "Consent repeated",
    ("OPT_IN", "superseded"): "Opt-in, superseded",
    ("OPT_OUT", "unsubscribed"): "Opted out",
    ("OPT_OUT", "already_unsubscribed"): "Opted out again",
    ("OPT_OUT", "superseded"): "Opt-out, superseded",
    ("ERASURE", "unsubscribed"): "Erased",
    ("ERASURE", "already_unsubscribed"): "Erased",
}
_HASH_CHARACTERS: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryView:
    """A ledger entry as pages show it; `kind` is a CSS class."""

    sequence: int
    title: str
    source: str
    proof: str
    quote: str | None
    # How the entry arrived, such as "from key Tills"; empty if that is not known.
    origin: str
    effective_at: datetime
    received_at: datetime
    kind: str
    hash: str
    previous_hash: str


def describe(visit: Visit, entry: LedgerEntry, key_names: Mapping[str, str]) -> EntryView:
    """`key_names` has the names of the API keys by their ids."""
    payload: dict[str, Any] = {} if entry.payload is None else msgspec.json.decode(entry.payload)
    source = payload.get("consent_source") or payload.get("source")
    return EntryView(
        sequence=entry.sequence,
        title=title_of(entry),
        source=SOURCES.get(source or "") or mask.text(visit, source) or "",
        proof=_describe_proof(visit, entry, payload),
        quote=mask.text(visit, payload.get("source_text") or payload.get("message") or payload.get("reason")),
        origin=_describe_origin(payload, key_names),
        effective_at=entry.effective_at,
        received_at=entry.received_at,
        kind=kind_of(entry),
        hash=entry.hash.hex()[:_HASH_CHARACTERS],
        previous_hash=entry.previous_hash.hex()[:_HASH_CHARACTERS],
    )


def title_of(entry: LedgerEntry) -> str:
    return TITLES.get((entry.kind, entry.outcome), f"{entry.kind}, {entry.outcome}")


def kind_of(entry: LedgerEntry) -> str:
    """The CSS class of an entry, by whether it allowed texts, ended them, or was superseded."""
    if entry.outcome == "superseded":
        return "aside"
    return "yes" if entry.kind == Kind.OPT_IN else "no"


def _describe_proof(visit: Visit, entry: LedgerEntry, payload: Mapping[str, Any]) -> str:
    if entry.payload is None:
        return "The content was erased; its hash remains."
    if entry.kind != Kind.OPT_IN:
        return ""
    if version := payload.get("terms_version"):
        return f"Terms {mask.text(visit, version)}."
    return "Weak proof: no terms version." if not payload.get("source_text") else ""


def _describe_origin(payload: Mapping[str, Any], key_names: Mapping[str, str]) -> str:
    if payload.get("message_id") or payload.get("message"):
        return "as a text message"
    if key_id := payload.get("api_key_id"):
        return f"from key {key_names.get(key_id, key_id)}"
    return ""
