"""The editor of a draft campaign: one form, next to the estimate of recipients and cost and previews of the text."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from starlette.responses import Response

from regulars.accounts.audit.log import record_act
from regulars.campaigns import manage
from regulars.campaigns.definition import VARIANTS_MAX, Definition
from regulars.campaigns.manage import Campaign
from regulars.campaigns.model import CampaignState
from regulars.campaigns.pages import definition_form as forms
from regulars.campaigns.pages.common import VARIANT_LETTERS, campaign_url, find_campaign, render_campaign
from regulars.campaigns.pages.figures import (
    describe_chosen_effect,
    describe_estimate,
    list_holdout_options,
    load_figures,
    load_previews,
    read_preview,
)
from regulars.campaigns.pages.progress import REASON_LABELS
from regulars.campaigns.pages.reach import list_rules
from regulars.columns.client import Analysis
from regulars.kit.db import Tx
from regulars.kit.etag import EtagMismatch, etag_of
from regulars.kit.ids import CAMPAIGN, TEXT
from regulars.links.marks import short_url
from regulars.segments.saved.manage import list_choices as list_segment_choices
from regulars.texts.errors import SettingRefused
from regulars.texts.labels import label_value
from regulars.texts.settings.store import load_texting
from regulars.texts.team_numbers import find_team_number, send_test_text
from regulars.texts.template import PLAIN_FIELDS, TemplateError
from regulars.texts.text_form import apply_button, list_variables, read_text_form
from regulars.web.form import EditConflict, FormState
from regulars.web.render import redirect
from regulars.web.visit import Visit

# The variables that a text of a campaign may contain, with their labels.
FIELDS: Final = {
    **{name: label for name, label in PLAIN_FIELDS.items() if not name.startswith(("ticket.", "store."))},
    "store.name": "the customer's home store",
    "store.city": "the city of that store",
}
NOT_SENDABLE_YET: Final = "The draft is saved. You cannot send it yet."


class Editor:
    def __init__(self, analysis: Analysis) -> None:
        self._analysis = analysis

    async def show(self, visit: Visit) -> Response:
        async with visit.database.reading() as tx:
            campaign = await find_campaign(tx, visit)
        if not campaign.is_editable:
            return redirect(visit, campaign_url(visit, campaign.row))
        zone = visit.format.zone
        form = forms.fill_form(campaign.definition, zone)
        form.values = {**forms.suggest_start(visit.now, zone), **form.values}
        # A new draft without a text does not show errors yet. The user begins with its text.
        begins = not campaign.definition.variants and not campaign.is_damaged
        if not begins:
            for fault in campaign.faults:
                form.refuse(forms.field_of(fault.place), fault.message)
        return await self._render(visit, campaign, form, campaign.definition, lead=NOT_SENDABLE_YET, begins=begins)

    async def save(self, visit: Visit) -> Response:
        form = FormState(visit.form)
        definition = forms.read_form(form, visit.format.zone)
        if form.is_refused:
            async with visit.database.reading() as tx:
                campaign = await find_campaign(tx, visit)
            return await self._render(visit, campaign, form, definition, status=400)
        try:
            async with visit.database.transaction() as tx:
                saved = await self._save(tx, visit, definition, etag=form.value("was"))
        except EtagMismatch:
            return await self._show_conflict(visit, form, definition)
        if form.value("then") == "send" and not saved.faults:
            return redirect(visit, campaign_url(visit, saved.row, "send"))
        return redirect(visit, campaign_url(visit, saved.row, "edit"), done="Draft saved.")

    async def _save(self, tx: Tx, visit: Visit, definition: Definition, *, etag: str) -> Campaign:
        """Save the definition; a draft that it does not change stays as it is."""
        before = await find_campaign(tx, visit)
        if before.row.state == CampaignState.DRAFT and definition == before.definition and not before.is_damaged:
            return before
        saved = await manage.update_campaign(
            tx, visit.organization_id, before.row.id, definition, created_by=visit.user.email, etag=etag
        )
        await record_act(
            tx,
            visit,
            "campaign.update",
            CAMPAIGN.encode(before.row.id),
            before={"revision": before.row.revision},
            after={"name": saved.row.name, "revision": saved.row.revision},
        )
        return saved

    async def measure(self, visit: Visit) -> Response:
        """Apply a button of the form, such as "add variant", and return the form with a new estimate; saves nothing."""
        values = dict(visit.form)
        for number in range(1, VARIANTS_MAX + 1):
            values |= apply_button(values, f"v{number}_")
        button, _, variant = values.get("do", "").partition(" ")
        if button == "add":
            values = forms.add_variant(values)
        elif button == "remove" and variant in {"1", "2", "3", "4"}:
            values = forms.remove_variant(values, int(variant))
        return await self._show_values(visit, values)

    async def test(self, visit: Visit) -> Response:
        """Send the text of one variant to the phone number of the signed-in user, and return the form."""
        values = dict(visit.form)
        number = int(values["test"]) if values.get("test") in {"1", "2", "3", "4"} else 1
        content = read_text_form(forms.values_of_variant(values, number), lambda _name, _sentence: None)
        language = values.get(f"v{number}_test_language", "")
        try:
            async with visit.database.transaction() as tx:
                text = await send_test_text(tx, visit.organization_id, visit.user, content, language=language)
                await record_act(tx, visit, "text.test", TEXT.encode(text.id))
            message = f"The test text of variant {VARIANT_LETTERS[number - 1]} is on its way to your number."
        except (SettingRefused, TemplateError) as error:
            message = f"No test text was sent. {error}"
        return await self._show_values(visit, values, message=message)

    async def _show_conflict(self, visit: Visit, form: FormState, definition: Definition) -> Response:
        async with visit.database.reading() as tx:
            campaign = await find_campaign(tx, visit)
        form.conflict = EditConflict(
            by=campaign.row.updated_by or "Another person",
            at=visit.format.clock(campaign.row.updated_at, seconds=True),
            now=f"{campaign.row.name}, {visit.format.count(len(campaign.definition.variants), 'variant')}.",
            url=campaign_url(visit, campaign.row, "edit"),
        )
        return await self._render(visit, campaign, form, definition, status=409)

    async def _show_values(self, visit: Visit, values: Mapping[str, str], *, message: str = "") -> Response:
        async with visit.database.reading() as tx:
            campaign = await find_campaign(tx, visit)
        definition = forms.read_form(FormState(values), visit.format.zone)
        # The form keeps the etag of the revision that the user opened, so that saving cannot overwrite later changes.
        return await self._render(
            visit, campaign, FormState(values), definition, etag=values.get("was"), message=message
        )

    async def _render(
        self,
        visit: Visit,
        campaign: Campaign,
        form: FormState,
        definition: Definition,
        *,
        status: int = 200,
        etag: str | None = None,
        message: str = "",
        lead: str = "",
        begins: bool = False,
    ) -> Response:
        figures = await load_figures(visit, self._analysis, definition)
        choice = read_preview(form.values, definition)
        previews = []
        if figures.estimate is not None and definition.variants:
            previews = await load_previews(visit, self._analysis, definition, choice)
        async with visit.database.reading() as tx:
            variables, keys = await list_variables(tx, visit.organization_id, FIELDS)
            segments = await list_segment_choices(tx, visit.organization_id)
            campaigns = await manage.list_choices(tx, visit.organization_id)
            texting = await load_texting(tx, visit.organization_id)
            number = None if texting is None else await find_team_number(tx, visit.user.id, texting=texting)
        row, canonical_id = campaign.row, CAMPAIGN.encode(campaign.row.id)
        estimate = figures.estimate
        values: dict[str, Any] = {
            "form": form,
            "lead": lead,
            "begins": begins,
            "shown_etag": etag if etag is not None and form.conflict is None else etag_of(row.revision),
            "edit": campaign_url(visit, row, "edit"),
            "lists": [
                ("include", "Segments", "Customers in any of these segments get the text", segments),
                ("exclude", "Leave out segments", "Customers in these segments get no text", segments),
                (
                    "received",
                    "Leave out recipients of",
                    "Customers who received these campaigns get no text",
                    [it for it in campaigns if it[0] != canonical_id],
                ),
            ],
            "rows_of": lambda field: forms.list_filled_rows(form.values, field),
            "variants": [
                (n, VARIANT_LETTERS[n - 1], forms.language_rows(form.values, n))
                for n in range(1, forms.count_variants(form.values) + 1)
            ],
            "variants_max": VARIANTS_MAX,
            "variables": variables,
            "attributes": [(key, key) for key in keys],
            "picks": list_holdout_options(visit.format, estimate),
            "effect": describe_chosen_effect(visit.format, estimate, definition.holdout_percent),
            "figures": figures,
            "shown": None if estimate is None else describe_estimate(visit.format, estimate),
            "reasons": REASON_LABELS,
            "rules": [] if estimate is None else list_rules(visit.format, estimate, definition),
            "choice": choice,
            "label_value": partial(label_value, languages=visit.format.locale.languages),
            "previews": previews,
            "has_number": number is not None and number.is_verified,
            "has_short_links": short_url("", is_demo=visit.organization.is_demo) is not None,
            "message": message,
        }
        return render_campaign(visit, "campaigns/edit.html", row, status=status, **values)
