"""Shows the recipients of a campaign: a list by outcome, a CSV file, and a JSON Lines file with the evidence of every
text and its consent."""

from collections.abc import AsyncIterator, Sequence
from typing import Final, NamedTuple

from starlette.responses import Response

from regulars.accounts.audit.exports import export_csv
from regulars.accounts.audit.log import record_act
from regulars.campaigns.manage import PATH, Campaign
from regulars.campaigns.model import WITHOUT_CONSENT
from regulars.campaigns.pages.common import VARIANT_LETTERS, find_campaign, render_campaign
from regulars.campaigns.pages.progress import OUTCOMES, REASON_LABELS
from regulars.campaigns.proof import write_proof
from regulars.campaigns.recipients import (
    ROWS_SCANNED_MAX,
    RecipientFilter,
    RecipientRow,
    list_recipient_page,
    position_of,
)
from regulars.campaigns.totals import list_totals
from regulars.experiments.arms import HELD_OUT_ARM
from regulars.kit.clock import format_timestamp
from regulars.kit.db import Tx
from regulars.kit.ids import CAMPAIGN, PROFILE, TEXT
from regulars.links.origin_kind import OriginKind
from regulars.profiles.model import Profile
from regulars.profiles.search import find_profiles_by_ids
from regulars.texts.find import find_texts_of_steps
from regulars.texts.model import TextRow
from regulars.web import mask
from regulars.web.download import Download
from regulars.web.listing import Filter, ListView, make_page, read_all_rows, read_view
from regulars.web.visit import Visit

CSV_HEADER: Final = (
    "id", "external_id", "first_name", "last_name", "variant", "outcome", "reason", "text_id", "open_at", "queued_at",
)  # fmt: skip
CSV_BATCH_ROWS: Final = 500


class RecipientLine(NamedTuple):
    row: RecipientRow
    customer: Profile | None
    name: str
    url: str
    text: TextRow | None
    text_url: str


async def show_recipients(visit: Visit) -> Response:
    async with visit.database.reading() as tx:
        campaign = await find_campaign(tx, visit)
        view = await _read_list_view(tx, visit, campaign)
        rows = await list_recipient_page(tx, visit.organization_id, campaign.row.id, _read_filter(view), view.request)
        page = make_page(view, rows, position_of)
        lines = await _load_lines(tx, visit, campaign, page.rows)
    return render_campaign(
        visit,
        "campaigns/recipients.html",
        campaign.row,
        view=view,
        page=page,
        lines=lines,
        labels={outcome.value: label for outcome, (label, _, _) in OUTCOMES.items()},
        reasons=REASON_LABELS,
        letters=VARIANT_LETTERS,
        looked_at=ROWS_SCANNED_MAX,
    )


async def export_recipients(visit: Visit) -> Response:
    async with visit.database.reading() as tx:
        campaign = await find_campaign(tx, visit)
        view = await _read_list_view(tx, visit, campaign)
    subject = CAMPAIGN.encode(campaign.row.id)
    rows = _csv_rows(visit, campaign, view)
    return export_csv(visit, "campaign.export", f"{subject}.csv", CSV_HEADER, rows, subject=subject)


async def export_proof(visit: Visit) -> Response:
    """Download the evidence file: one line of JSON for each text, in the format of the command line."""
    async with visit.database.transaction() as tx:
        campaign = await find_campaign(tx, visit)
        subject = CAMPAIGN.encode(campaign.row.id)
        await record_act(tx, visit, "campaign.proof", subject)
    pages = write_proof(visit.database, visit.organization_id, campaign.row.id)
    return Download(pages, filename=f"{subject}.jsonl", media_type="application/jsonl")


async def _read_list_view(tx: Tx, visit: Visit, campaign: Campaign) -> ListView:
    """Read the state of the list from the URL; its filters offer only values that occur."""
    totals = [
        total
        for total in await list_totals(tx, visit.organization_id, campaign.row.id)
        if total.outcome != WITHOUT_CONSENT and total.recipients
    ]
    occurring, query = {total.outcome for total in totals}, visit.query
    outcomes = [
        (it.value, label) for it, (label, _, _) in OUTCOMES.items() if it in occurring or query.get("outcome") == it
    ]
    reasons = sorted(
        {total.reason for total in totals if total.reason} | ({query.get("reason", "")} & REASON_LABELS.keys())
    )
    countries = sorted({total.country for total in totals if total.country})
    names = visit.format.locale.territories
    filters = (
        Filter("outcome", "Outcome", tuple(outcomes)),
        Filter("reason", "Reason", tuple((it, REASON_LABELS.get(it, it)) for it in reasons)),
        Filter("country", "Country", tuple((it, names.get(it, it)) for it in countries)),
        Filter(
            "variant",
            "Variant",
            tuple(zip("1234", VARIANT_LETTERS, strict=True))[: max(len(campaign.definition.variants), 1)],
        ),
    )
    path = f"{PATH}/{CAMPAIGN.encode(campaign.row.id)}/recipients"
    return read_view(visit, "campaign recipients", path, filters=filters)


def _read_filter(view: ListView) -> RecipientFilter:
    return RecipientFilter(
        outcome=view.value("outcome") or None,
        reason=view.value("reason") or None,
        country=view.value("country") or None,
        arm=int(view.value("variant")) if view.value("variant") else None,
    )


async def _load_lines(tx: Tx, visit: Visit, campaign: Campaign, rows: Sequence[RecipientRow]) -> list[RecipientLine]:
    profile_ids = [row.profile_id for row in rows]
    profiles = {profile.id: profile for profile in await find_profiles_by_ids(tx, visit.organization_id, profile_ids)}
    steps = [(campaign.row.id, str(row.profile_id)) for row in rows]
    # The step of a campaign's text is the id of its recipient.
    texts = await find_texts_of_steps(tx, visit.organization_id, OriginKind.CAMPAIGN, steps)
    lines = []
    for row in rows:
        profile = profiles.get(row.profile_id)
        text = texts.get((campaign.row.id, str(row.profile_id)))
        name = None if profile is None else mask.name(visit, profile.first_name, profile.last_name)
        lines.append(
            RecipientLine(
                row,
                profile,
                name or "No name yet",
                visit.url("/customers", PROFILE.encode(row.profile_id)),
                text,
                "" if text is None else visit.url("/messages", TEXT.encode(text.id)),
            )
        )
    return lines


async def _csv_rows(visit: Visit, campaign: Campaign, view: ListView) -> AsyncIterator[list[str]]:
    batch: list[RecipientRow] = []
    rows = read_all_rows(
        visit.database.reading,
        lambda tx, page: list_recipient_page(tx, visit.organization_id, campaign.row.id, _read_filter(view), page),
        position_of,
        limit=CSV_BATCH_ROWS,
    )
    async for row in rows:
        batch.append(row)
        if len(batch) == CSV_BATCH_ROWS:
            for cells in await _load_cells(visit, campaign, batch):
                yield cells
            batch = []
    for cells in await _load_cells(visit, campaign, batch):
        yield cells


async def _load_cells(visit: Visit, campaign: Campaign, rows: Sequence[RecipientRow]) -> list[list[str]]:
    """The cells of CSV rows. A text may be queued from `open_at` on, and was queued at `fed_at`. Names are not
    masked, because every role that may export them sees personal data."""
    async with visit.database.reading() as tx:
        lines = await _load_lines(tx, visit, campaign, rows)
    return [
        [
            PROFILE.encode(it.row.profile_id),
            "" if it.customer is None else it.customer.external_id,
            "" if it.customer is None else it.customer.first_name or "",
            "" if it.customer is None else it.customer.last_name or "",
            str(it.row.arm) if it.row.arm > HELD_OUT_ARM else "",
            it.row.outcome,
            it.row.reason,
            "" if it.text is None else TEXT.encode(it.text.id),
            format_timestamp(it.row.open_at),
            "" if it.row.fed_at is None else format_timestamp(it.row.fed_at),
        ]
        for it in lines
    ]
