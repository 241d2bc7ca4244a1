"""The page of a campaign: its progress, the outcomes of its recipients, which come from its totals, and the replies."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

from starlette.responses import Response

from regulars.campaigns.approval import find_approval, why_not_approver
from regulars.campaigns.approval_rule import ApprovalRule, load_rule
from regulars.campaigns.definition import Definition
from regulars.campaigns.manage import Campaign
from regulars.campaigns.model import (
    ACTIVE,
    GETS_NO_TEXT,
    STOPPABLE,
    WITHOUT_CONSENT,
    CampaignRow,
    CampaignState,
    RecipientOutcome,
    TotalRow,
    add_up,
    was_sent,
)
from regulars.campaigns.pages.common import VARIANT_LETTERS, describe_most, find_campaign, render_campaign
from regulars.campaigns.pages.definition_labels import (
    describe_audience,
    describe_freeze,
    describe_path,
    describe_schedule,
    describe_texts,
)
from regulars.campaigns.recipients import find_arms
from regulars.campaigns.run.recipient_queries import find_next_send_at
from regulars.campaigns.totals import list_totals
from regulars.experiments.arms import HELD_OUT_ARM, NO_ARM
from regulars.inbox.find import list_replies_to_origin
from regulars.kit.db import Tx
from regulars.kit.ids import CAMPAIGN, REPLY
from regulars.links.origin_kind import OriginKind
from regulars.texts.cost import estimate as cost_of
from regulars.texts.labels import MEANINGS, REASONS
from regulars.texts.model import ReplyToOrigin
from regulars.texts.settings.model import Price
from regulars.texts.settings.store import load_texting
from regulars.texts.template import texts_by_value
from regulars.texts.template_labels import describe_template
from regulars.web.charts import stack_sections
from regulars.web.format import Format
from regulars.web.visit import Visit

# Replies that arrive later than this after the end of a campaign are not counted.
REPLIES_WITHIN: Final = timedelta(days=7)
REPLIES_MAX: Final = 2_000
WAITING_REPLIES_SHOWN: Final = 5
# The label, the CSS class of the section of the bar, and the CSS class of its legend.
OUTCOMES: Final = {
    RecipientOutcome.DELIVERED: ("Delivered", "c1", ""),
    RecipientOutcome.SENT: ("Sent, no receipt yet", "c3", "is-3"),
    RecipientOutcome.UNKNOWN: ("May have been sent", "line", "is-line"),
    RecipientOutcome.FAILED: ("Failed", "c4", "is-4"),
    RecipientOutcome.SKIPPED: ("Skipped", "c2", "is-2"),
    RecipientOutcome.EXPIRED: ("Not sent in time", "blocked", "is-blocked"),
    RecipientOutcome.QUEUED: ("Queued", "line", "is-line"),
    RecipientOutcome.WAITING: ("Waiting", "past", "is-past"),
    RecipientOutcome.ERASED: ("Customer erased", "blocked", "is-none"),
    RecipientOutcome.HELD_OUT: ("Holdout, gets no text", "c5", "is-5"),
    RecipientOutcome.GLOBAL_HOLDOUT: ("Global holdout, gets no text", "past", "is-past"),
}
REASON_LABELS: Final = {
    **{reason.value: label.name for reason, label in REASONS.items()},
    "same_number": "Another recipient has this number",
    "local_time_passed": "Local time had passed",
}
WITHOUT_CONSENT_LABELS: Final = {
    "never_asked": "Never asked for consent",
    "withdrawn": "Opted out",
    "do_not_contact": "Do not contact",
}
# The outcomes of recipients whose text is sent, or will not be sent.
_DONE: Final = frozenset(RecipientOutcome) - GETS_NO_TEXT - {RecipientOutcome.WAITING, RecipientOutcome.QUEUED}


class OutcomeLine(NamedTuple):
    """An outcome as a row of the table and a section of the bar chart; `reasons` has code, label and number."""

    outcome: str
    label: str
    bar_class: str
    legend_class: str
    number: int
    reasons: list[tuple[str, str, int]]
    x: float
    width: float


class CountryProgress(NamedTuple):
    country: str
    outcomes: Mapping[str, int]
    parts: int
    cost: str


class VariantLine(NamedTuple):
    """A variant of the text; `arm` is its number, `stops` the number of recipients who opted out."""

    arm: int
    letter: str
    text: str
    recipients: int
    sent: int
    delivered: int
    stops: int


class Replies(NamedTuple):
    """Replies of recipients to their text. `waiting` has the replies that no user has handled: id, time and meaning.
    `stops` has the number of opt-outs by variant; with `is_cut` only the newest replies were counted."""

    by_meaning: list[tuple[str, int]]
    waiting: list[tuple[str, datetime, str]]
    total: int
    stops: Mapping[int, int]
    is_cut: bool


class ApprovalView(NamedTuple):
    """Of a campaign in an organization with limits: the limits, who approved what, if anyone, and why this user cannot
    approve it. All are sentences or empty."""

    rule: str
    given: str = ""
    refusal: str = ""


async def show_campaign(visit: Visit) -> Response:
    async with visit.database.reading() as tx:
        campaign = await find_campaign(tx, visit)
        row = campaign.row
        totals = await list_totals(tx, visit.organization_id, row.id)
        texting = await load_texting(tx, visit.organization_id)
        replies = await _find_replies(tx, visit, row)
        is_sending = row.state == CampaignState.SENDING
        next_send_at = await find_next_send_at(tx, visit.organization_id, row.id) if is_sending else None
        approval = await _view_approval(tx, visit, campaign)
        audience = await describe_audience(tx, visit, campaign.definition)
    outcomes = add_up(totals)
    prices = {} if texting is None else texting.settings.prices
    return render_campaign(
        visit,
        "campaigns/show.html",
        row,
        campaign=campaign,
        definition=campaign.definition,
        canonical=CAMPAIGN.encode(row.id),
        is_live=row.state in ACTIVE,
        is_stoppable=row.state in STOPPABLE,
        outcomes=outcomes,
        audience_total=sum(outcomes.values()),
        recipients=sum(outcomes.values()) - sum(outcomes[outcome] for outcome in GETS_NO_TEXT),
        done=sum(outcomes[outcome] for outcome in _DONE),
        lines=list_outcome_lines(totals),
        without_consent=_count_without_consent(totals),
        lead=_describe_state(visit.format, row, campaign.definition, outcomes, next_send_at),
        countries=_list_countries(visit.format, totals, prices),
        cost=visit.format.amounts(cost_of(_count_charged_parts(totals), prices).amounts),
        variants=_list_variants(campaign.definition, totals, replies.stops),
        replies=replies,
        replies_max=REPLIES_MAX,
        is_on_hold=texting is not None and texting.is_on_hold,
        approval=approval,
        schedule=describe_schedule(visit.format, campaign.definition),
        audience=audience,
        texts=describe_texts(visit.format, campaign.definition),
        faults=[(describe_path(fault.place), fault.message) for fault in campaign.faults],
    )


async def _view_approval(tx: Tx, visit: Visit, campaign: Campaign) -> ApprovalView | None:
    """None once the campaign has started: from then on its page is loaded every two seconds."""
    row, definition = campaign.row, campaign.definition
    rule = await load_rule(tx, visit.organization_id) if row.can_be_approved else ApprovalRule()
    if rule == ApprovalRule():
        return None
    limits = _describe_rule(visit.format, rule)
    approval = await find_approval(tx, visit.organization_id, row, definition)
    if approval is not None:
        return ApprovalView(limits, given=f"{approval.by} approved {describe_most(visit.format, approval.most)}.")
    refusal = await why_not_approver(tx, visit.organization_id, row, definition, by=visit.user.email)
    return ApprovalView(limits, refusal=refusal or "")


def _describe_rule(formats: Format, rule: ApprovalRule) -> str:
    limits = [] if rule.recipients_max is None else [formats.count(rule.recipients_max, "recipient")]
    limits += [formats.money(round(amount * 100), currency) for currency, amount in rule.cost_max.items()]
    return f"A campaign above {' or '.join(limits)} needs the approval of another person."


def list_outcome_lines(totals: Sequence[TotalRow]) -> list[OutcomeLine]:
    """The outcomes that occur, with their reasons; the numbers add up to the audience."""
    counted: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for total in totals:
        if total.outcome != WITHOUT_CONSENT:
            counted[total.outcome][total.reason] += total.recipients
    sections = stack_sections([sum(counted[outcome].values()) for outcome in OUTCOMES])
    lines = []
    for (outcome, label_and_classes), section in zip(OUTCOMES.items(), sections, strict=True):
        by_reason = {reason: count for reason, count in counted[outcome].items() if count}
        reasons = [(reason, REASON_LABELS.get(reason, reason), count) for reason, count in by_reason.items() if reason]
        reasons.sort(key=lambda it: -it[2])
        if number := sum(by_reason.values()):
            lines.append(OutcomeLine(outcome.value, *label_and_classes, number, reasons, *section))
    return lines


def _count_without_consent(totals: Sequence[TotalRow]) -> list[tuple[str, int]]:
    return [
        (WITHOUT_CONSENT_LABELS.get(total.reason, total.reason), total.recipients)
        for total in totals
        if total.outcome == WITHOUT_CONSENT and total.recipients
    ]


def _describe_state(
    formats: Format,
    row: CampaignRow,
    definition: Definition,
    outcomes: Mapping[str, int],
    next_send_at: datetime | None,
) -> str:
    """The campaign's state in one sentence."""
    match CampaignState(row.state):
        case CampaignState.SCHEDULED if row.starts_at is not None:
            freeze = describe_freeze(formats, definition, row.starts_at)
            return freeze or f"Starts on {formats.full_moment(row.starts_at)}"
        case CampaignState.PREPARING:
            return "Preparing the recipients; the first text leaves when all are ready"
        case CampaignState.SENDING:
            if next_send_at is not None and next_send_at > formats.now:
                return f"The next texts leave at {formats.moment(next_send_at)}"
            ends_at = estimate_end(row, definition, outcomes, now=formats.now)
            return "Sending" if ends_at is None else f"Sending ends at about {formats.moment(ends_at)}"
        case CampaignState.PAUSED:
            return "Paused; nothing is sent"
        case CampaignState.CANCELLED:
            return "Cancelled; nothing more is sent"
        case CampaignState.ENDED:
            return "Finished; no more texts leave"
        case _:
            return "Not sent yet"


def estimate_end(
    row: CampaignRow, definition: Definition, outcomes: Mapping[str, int], *, now: datetime
) -> datetime | None:
    """When the campaign will probably end, by its rate limit or its speed since the audience was fixed
    (`frozen_at`); at the latest `not_after`."""
    unsent = outcomes[RecipientOutcome.WAITING] + outcomes[RecipientOutcome.QUEUED]
    if row.frozen_at is None or row.not_after is None or not unsent:
        return None
    if definition.texts_per_hour is not None:
        seconds = unsent * 3600 / definition.texts_per_hour
    else:
        done = sum(outcomes[outcome] for outcome in _DONE)
        if not done:
            return None
        seconds = unsent * (now - row.frozen_at).total_seconds() / done
    return min(now + timedelta(seconds=seconds), row.not_after)


def _count_charged_parts(totals: Sequence[TotalRow]) -> dict[str, int]:
    """The SMS parts by country of texts that a provider accepted, and so charges for."""
    parts: dict[str, int] = defaultdict(int)
    for total in totals:
        if was_sent(total.outcome, total.reason):
            parts[total.country] += total.parts
    return parts


def _list_countries(formats: Format, totals: Sequence[TotalRow], prices: Mapping[str, Price]) -> list[CountryProgress]:
    """Outcomes and cost by country, for recipients whose text was queued; before that the country is not known."""
    counted: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys((it.value for it in RecipientOutcome), 0))
    for total in totals:
        if total.country and total.recipients:
            counted[total.country][total.outcome] += total.recipients
    parts = _count_charged_parts(totals)
    lines = [
        CountryProgress(
            country,
            outcomes,
            parts.get(country, 0),
            formats.amounts(cost_of({country: parts.get(country, 0)}, prices).amounts),
        )
        for country, outcomes in counted.items()
    ]
    return sorted(lines, key=lambda it: (-sum(it.outcomes.values()), it.country))


def _list_variants(definition: Definition, totals: Sequence[TotalRow], stops: Mapping[int, int]) -> list[VariantLine]:
    lines = []
    for arm, variant in enumerate(definition.variants, start=HELD_OUT_ARM + 1):
        arm_totals = [total for total in totals if total.arm == arm]
        lines.append(
            VariantLine(
                arm,
                VARIANT_LETTERS[arm - 1],
                describe_template(texts_by_value(variant.text)[""]),  # the default text
                sum(total.recipients for total in arm_totals),
                sum(total.recipients for total in arm_totals if was_sent(total.outcome, total.reason)),
                sum(total.recipients for total in arm_totals if total.outcome == RecipientOutcome.DELIVERED),
                stops.get(arm, 0),
            )
        )
    return lines


async def _find_replies(tx: Tx, visit: Visit, row: CampaignRow) -> Replies:
    if row.frozen_at is None:
        return Replies([], [], 0, {}, is_cut=False)
    replies, is_cut = await list_replies_to_origin(
        tx,
        visit.organization_id,
        OriginKind.CAMPAIGN,
        row.id,
        since=row.frozen_at,
        until=(row.ended_at or visit.now) + REPLIES_WITHIN,
        limit=REPLIES_MAX,
    )
    # The step of a campaign's text is the id of its recipient.
    stopped = [UUID(reply.step) for reply in replies if reply.meaning == "stop"]
    arms = await find_arms(tx, visit.organization_id, row.id, stopped) if stopped else {}
    stops: dict[int, int] = defaultdict(int)
    for profile_id in stopped:
        stops[arms.get(profile_id, NO_ARM)] += 1
    return _count_replies(replies, stops, is_cut=is_cut)


def _count_replies(replies: Sequence[ReplyToOrigin], stops: Mapping[int, int], *, is_cut: bool) -> Replies:
    counted = dict.fromkeys(MEANINGS, 0)
    for reply in replies:
        counted[reply.meaning] += 1
    waiting = [
        (REPLY.encode(reply.id), reply.received_at, MEANINGS[reply.meaning].name)
        for reply in replies
        if reply.decision is None
    ]
    return Replies(
        [(MEANINGS[meaning].name, count) for meaning, count in counted.items() if count],
        waiting[:WAITING_REPLIES_SHOWN],
        len(replies),
        stops,
        is_cut=is_cut,
    )
