"""Explains on the page of a text why it was not sent: what the check found, when the next text is possible, and the
page on which a user can change it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from regulars.consent.find import find_by_number_hash
from regulars.consent.subscription import Subscription
from regulars.kit.db import Tx
from regulars.kit.ids import PROFILE, REPLY, SUBSCRIPTION, TEXT
from regulars.links.origin_kind import OriginKind
from regulars.texts.find import find_texts, find_undecided_reply
from regulars.texts.gate import find_cap_end, find_caps_end
from regulars.texts.labels import ORIGINS, describe_cap, describe_hours, read_reason
from regulars.texts.model import SkipReason, TextRow
from regulars.texts.number_location import locate_number
from regulars.texts.pages.message_view import INBOX, MESSAGES, NUMBERS, load_texting_of
from regulars.texts.pages.rules import COUNTRIES, RULES
from regulars.texts.pages.settings import HOLDOUT, PATH
from regulars.texts.queries.claims import CountedText, find_counted_texts
from regulars.texts.queries.settings import find_change_time
from regulars.texts.settings.model import Cap
from regulars.texts.settings.store import Texting
from regulars.texts.text_origins import OriginFinders, TextOrigin, find_origins
from regulars.web.access import Action
from regulars.web.format import country_name
from regulars.web.visit import Visit

CONSENT_NUMBERS: Final = "/consent/numbers"
CUSTOMERS: Final = "/customers"
# A cap may allow hundreds of texts; the page names the newest of them.
TEXTS_NAMED_MAX: Final = 5
_OF_COUNTRY: Final = frozenset({SkipReason.HOURS, SkipReason.COUNTRY_NOT_SET, SkipReason.SENDER_REFUSED})
_OF_PROVIDER: Final = frozenset({SkipReason.REFUSED, SkipReason.NOT_REACHED, SkipReason.EXPIRED})


class PageLink(NamedTuple):
    label: str
    url: str


@dataclass(frozen=True, slots=True)
class SkipView:
    """What a page says about a text that was not sent, beside the label of its reason."""

    sentences: Sequence[str] = ()
    # The texts that filled a frequency cap, the newest first.
    counted_texts: Sequence[PageLink] = ()
    # Where a user can change what stopped the text.
    change: PageLink | None = None


async def explain_skip(
    tx: Tx, visit: Visit, finders: OriginFinders, text: TextRow, origin: TextOrigin | None
) -> SkipView | None:
    """Explain why a text was not sent; None if it has no known reason."""
    reason = read_reason(text.reason)
    if reason is None:
        return None
    if reason is SkipReason.CAP:
        return await _explain_cap(tx, visit, finders, text, await load_texting_of(tx, visit))
    if reason is SkipReason.NO_CONSENT:
        return await _explain_consent(tx, visit, text)
    if reason is SkipReason.NOT_LINKED:
        return await _explain_link(tx, visit, text)
    if reason is SkipReason.SUPPRESSED:
        return await _explain_reply(tx, visit, text)
    if reason in _OF_COUNTRY:
        return _explain_country(visit, text, await load_texting_of(tx, visit), reason)
    return SkipView(_describe_wait(visit, text, reason), change=_find_change(visit, reason, origin))


def _describe_wait(visit: Visit, text: TextRow, reason: SkipReason) -> list[str]:
    if reason is not SkipReason.EXPIRED:
        return []
    moment = visit.format.full_moment
    return [f"It was requested on {moment(text.created_at)} and could be sent until {moment(text.expires_at)}."]


def _find_change(visit: Visit, reason: SkipReason, origin: TextOrigin | None) -> PageLink | None:
    if reason is SkipReason.GLOBAL_HOLDOUT:
        return PageLink("Open global holdout", visit.url(HOLDOUT))
    if reason is SkipReason.UNDELIVERED:
        return None
    if reason in _OF_PROVIDER:
        return PageLink("Open text settings", visit.url(PATH))
    return None if origin is None else PageLink(f"Open {origin.name}", visit.url(*origin.path))


async def _explain_cap(tx: Tx, visit: Visit, finders: OriginFinders, text: TextRow, texting: Texting) -> SkipView:
    """Find the caps that were full when the text was checked. The caps are those of today: what a cap was then is not
    stored, so a later change of the settings is mentioned."""
    caps, checked_at = texting.settings.caps, text.ended_at or text.created_at
    change = PageLink(f"{_verb_of(visit)} frequency caps", visit.url(RULES))
    longest = timedelta(hours=max((cap.hours for cap in caps), default=0))
    counted = await _list_counted(tx, visit, text, since=checked_at - longest)
    earlier = sorted((it for it in counted if it.claimed_at <= checked_at), key=lambda it: it.claimed_at)
    full = [cap for cap in caps if find_cap_end(cap, [it.claimed_at for it in earlier], checked_at) > checked_at]
    sentences = [f"The cap of {describe_cap(cap)} was full on {visit.format.full_moment(checked_at)}." for cap in full]
    if not full:
        sentences.append("Today's caps were not full then. A cap was changed since, or a text that counted has failed.")
    changed_at = await find_change_time(tx, visit.organization_id)
    if full and changed_at is not None and changed_at > checked_at:
        sentences.append(
            f"Text settings were changed on {visit.format.full_moment(changed_at)}, so another cap may have applied."
        )
    sentences.append(_describe_next(visit, caps, [it.claimed_at for it in counted]))
    filling = _list_filling(full, earlier, checked_at)
    named = await _link_texts(tx, visit, finders, filling[: -TEXTS_NAMED_MAX - 1 : -1])
    if len(filling) > TEXTS_NAMED_MAX and text.number_hash is not None:
        url = visit.url(NUMBERS, text.number_hash.hex())
        named.append(PageLink(f"{len(filling) - TEXTS_NAMED_MAX} earlier texts to this number", url))
    return SkipView(sentences, named, change)


async def _list_counted(tx: Tx, visit: Visit, text: TextRow, *, since: datetime) -> Sequence[CountedText]:
    if text.number_hash is None:
        return ()
    counted = await find_counted_texts(tx, visit.organization_id, [text.number_hash], since=since)
    return counted.get(text.number_hash, ())


def _describe_next(visit: Visit, caps: Sequence[Cap], counted_at: Sequence[datetime]) -> str:
    if any(cap.texts == 0 for cap in caps):
        return "A cap of 0 texts allows no text until you change it."
    next_at = find_caps_end(caps, counted_at, visit.now)
    if next_at is None:
        return "The caps allow a text to this number now, within sending hours."
    return f"The caps allow the next text from {visit.format.full_moment(next_at)}, within sending hours."


def _list_filling(full: Sequence[Cap], earlier: Sequence[CountedText], checked_at: datetime) -> Sequence[CountedText]:
    """The texts, oldest first, that were in the periods of the full caps."""
    periods = [timedelta(hours=cap.hours) for cap in full if cap.texts]
    begins_at = checked_at - max(periods, default=timedelta())
    return [it for it in earlier if it.claimed_at > begins_at]


async def _link_texts(tx: Tx, visit: Visit, finders: OriginFinders, counted: Sequence[CountedText]) -> list[PageLink]:
    """The texts, each with its time and the journey or campaign that requested it, or else who did."""
    texts = await find_texts(tx, visit.organization_id, [it.id for it in counted])
    origins = await find_origins(tx, visit.organization_id, finders, texts.values())
    links = []
    for it in counted:
        label, text = f"Text of {visit.format.full_moment(it.claimed_at)}", texts.get(it.id)
        if text is not None:
            origin = origins.get(text.origin_id)
            label += f": {ORIGINS[OriginKind(text.origin_kind)] if origin is None else origin.name}"
        links.append(PageLink(label, visit.url(MESSAGES, TEXT.encode(it.id))))
    return links


async def _explain_consent(tx: Tx, visit: Visit, text: TextRow) -> SkipView:
    if text.number_hash is None:
        return SkipView(["The customer had no number that may be texted."])
    subscription = await find_by_number_hash(tx, visit.organization_id, text.number_hash)
    if subscription is None:
        return SkipView(["This number never opted in."])
    url = visit.url(CONSENT_NUMBERS, SUBSCRIPTION.encode(subscription.id))
    return SkipView([_describe_consent(visit, subscription)], change=PageLink("Open consent of this number", url))


def _describe_consent(visit: Visit, subscription: Subscription) -> str:
    state = subscription.state
    if state.unsubscribed_at is not None:
        return f"The number opted out on {visit.format.full_moment(state.unsubscribed_at)}."
    opted_in = "" if state.consented_at is None else f" It opted in on {visit.format.full_moment(state.consented_at)}."
    return f"The number may be texted now.{opted_in}"


async def _explain_link(tx: Tx, visit: Visit, text: TextRow) -> SkipView:
    hashed = text.number_hash
    subscription = None if hashed is None else await find_by_number_hash(tx, visit.organization_id, hashed)
    if subscription is None or subscription.profile is None:
        return SkipView(["No customer has the number now."])
    if subscription.profile.id == text.profile_id:
        return SkipView(["The customer has the number again, so a text to it can be sent now."])
    url = visit.url(CUSTOMERS, PROFILE.encode(subscription.profile.id))
    return SkipView(change=PageLink("Open the customer who has the number", url))


async def _explain_reply(tx: Tx, visit: Visit, text: TextRow) -> SkipView:
    """Link the reply that a user has to decide about."""
    hashed = text.number_hash
    reply_id = None if hashed is None else await find_undecided_reply(tx, visit.organization_id, hashed)
    if reply_id is None:
        return SkipView(["The reply needs no decision any more."])
    url = visit.url(INBOX, REPLY.encode(reply_id))
    return SkipView(["It still waits for a decision of your team."], change=PageLink("Decide about the reply", url))


def _explain_country(visit: Visit, text: TextRow, texting: Texting, reason: SkipReason) -> SkipView:
    country = locate_number(text.phone_number).country if text.phone_number else None
    if country is None:
        return SkipView(change=PageLink(f"{_verb_of(visit)} hours, caps and notices", visit.url(RULES)))
    name, url = country_name(country), visit.url(COUNTRIES, country)
    if reason is SkipReason.HOURS:
        sentence = f"Sending hours of {name}: {describe_hours(texting.settings.rule_of(country))}."
    elif (fault := texting.settings.why_not_sent(country)) is not None:
        sentence = fault
    elif texting.opt_out_notice_of(country) is None:
        sentence = f"{name} has no opt-out notice."
    else:
        sentence = f"The rules of {name} were changed since: texts can be sent there now."
    return SkipView([sentence], change=PageLink(f"{_verb_of(visit)} rules of {name}", url))


def _verb_of(visit: Visit) -> str:
    """What this user may do with text settings."""
    return "Change" if visit.may(Action.MANAGE_TEXTS) else "Show"
