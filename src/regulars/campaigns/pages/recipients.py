"""Shows the recipients of a campaign: a list by outcome, a CSV file, and a JSON Lines file with the evidence of every
text and its consent."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from starlette.responses import Response

from regulars.accounts.audit.log import record_act
from regulars.accounts.list_pages import ListPages, OpenedList
from regulars.campaigns.manage import PATH, Campaign
from regulars.campaigns.model import WITHOUT_CONSENT
from regulars.campaigns.pages.common import VARIANT_LETTERS, find_campaign, values_of_campaign
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
from regulars.kit.db import Tx
from regulars.kit.ids import CAMPAIGN, PROFILE, TEXT
from regulars.kit.keyset import PageRequest, PageRows
from regulars.links.origin_kind import OriginKind
from regulars.lists.columns import HARMLESS, Column, Columns, Head, Place
from regulars.profiles.model import Profile
from regulars.profiles.search import find_profiles_by_ids
from regulars.texts.find import find_texts_of_steps
from regulars.texts.model import TextRow
from regulars.web.download import Download
from regulars.web.listing import Filter, ListView, read_view
from regulars.web.visit import Visit

CSV_BATCH_ROWS: Final = 500


class RecipientLine(NamedTuple):
    row: RecipientRow
    customer: Profile | None
    text: TextRow | None


_VARIANT: Final = Head("Variant", "drop-4", 2)
# A text may be queued from `open_at` on, and was queued at `fed_at`.
COLUMNS: Final = Columns[RecipientLine](
    Column("id", lambda it: PROFILE.encode(it.row.profile_id), HARMLESS, places=Place.FILE),
    Column("external_id", lambda it: it.customer and it.customer.external_id, head=Head("Customer", "clip", 1)),
    Column("first_name", lambda it: it.customer and it.customer.first_name),
    Column("last_name", lambda it: it.customer and it.customer.last_name),
    Column("variant", lambda it: it.row.arm if it.row.arm > HELD_OUT_ARM else None, HARMLESS, _VARIANT),
    Column("outcome", lambda it: it.row.outcome, HARMLESS, Head("Outcome", "", 5)),
    Column("reason", lambda it: it.row.reason, HARMLESS),
    Column("text_id", lambda it: it.text and TEXT.encode(it.text.id), HARMLESS, Head("Text", "drop-3", 3)),
    Column("open_at", lambda it: it.row.open_at, HARMLESS),
    Column("queued_at", lambda it: it.row.fed_at, HARMLESS, Head("Queued", "nowrap drop-2", 4)),
)


async def _open_recipients(tx: Tx, visit: Visit) -> OpenedList[RecipientLine]:
    campaign = await find_campaign(tx, visit)
    view = await _read_list_view(tx, visit, campaign)
    filters = _read_filter(view)

    async def fetch(tx: Tx, page: PageRequest) -> PageRows[RecipientLine]:
        rows = await list_recipient_page(tx, visit.organization_id, campaign.row.id, filters, page)
        return rows.replaced(await _load_lines(tx, visit, campaign, rows))

    values = {
        **values_of_campaign(visit, campaign.row),
        "labels": {outcome.value: label for outcome, (label, _, _) in OUTCOMES.items()},
        "reasons": REASON_LABELS,
        "letters": VARIANT_LETTERS,
        "looked_at": ROWS_SCANNED_MAX,
    }
    source = view.by_key(fetch, lambda line: position_of(line.row))
    return OpenedList(view, source, values=values, subject=CAMPAIGN.encode(campaign.row.id))


RECIPIENTS: Final = ListPages(
    "campaigns/recipients.html",
    COLUMNS,
    _open_recipients,
    act="campaign.export",
    file_name="{subject}.csv",
    rows_at_once=CSV_BATCH_ROWS,
)


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
    return [
        RecipientLine(row, profiles.get(row.profile_id), texts.get((campaign.row.id, str(row.profile_id))))
        for row in rows
    ]
