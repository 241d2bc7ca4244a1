"""The settings page for attribution windows (how long after a text or a click a purchase is credited to it), with a
preview of a change."""

from typing import Any, Final, NamedTuple

from starlette.responses import Response

from regulars.accounts.audit.log import record_act
from regulars.attribution.model import CLICK_DAYS_MAX, DELIVERY_HOURS_MAX, LIFT_DAYS_MAX, Attributed, Windows
from regulars.attribution.windows import (
    WindowsChanged,
    WindowsPreview,
    WindowsVersion,
    list_versions,
    preview_windows,
    save_windows,
)
from regulars.web.form import FormState
from regulars.web.format import Format
from regulars.web.render import redirect, render_form
from regulars.web.visit import Visit

PATH: Final = "/settings/attribution"
_LIMITS: Final = {"click_days": CLICK_DAYS_MAX, "delivery_hours": DELIVERY_HOURS_MAX, "lift_days": LIFT_DAYS_MAX}


class Difference(NamedTuple):
    """The sums of one currency, with the present windows and with the new windows."""

    currency: str
    before: str
    after: str
    change: str
    tickets_before: str
    tickets_after: str


async def preview(visit: Visit) -> Response:
    """Show what the new windows would change; nothing is saved."""
    form = FormState(visit.form, again=show_settings)
    windows = _read_windows(form)
    form.check()
    async with visit.database.reading() as tx:
        comparison = await preview_windows(tx, visit.organization_id, windows)
    return await show_settings(visit, form, comparison=comparison)


async def save(visit: Visit) -> Response:
    form = FormState(visit.form, again=show_settings)
    windows = _read_windows(form)
    expected = form.integer("version", minimum=0, maximum=1_000_000)
    form.check()
    try:
        async with visit.database.transaction() as tx:
            before = (await list_versions(tx, visit.organization_id))[0]
            saved = await save_windows(tx, visit.organization_id, windows, expected=expected, by=visit.user.email)
            await record_act(
                tx,
                visit,
                "attribution.windows",
                str(saved.version),
                before=before.windows._asdict(),
                after=windows._asdict(),
            )
    except WindowsChanged:
        sentence = "Another person changed the windows meanwhile. Check them and save again."
        raise form.refusal("click_days", sentence) from None
    return redirect(visit, visit.url(PATH), done="Windows saved. We compute the last 60 days again.")


def _read_windows(form: FormState) -> Windows:
    return Windows(**{name: form.integer(name, minimum=1, maximum=limit) for name, limit in _LIMITS.items()})


async def show_settings(
    visit: Visit, form: FormState | None = None, *, comparison: WindowsPreview | None = None
) -> Response:
    async with visit.database.reading() as tx:
        versions = await list_versions(tx, visit.organization_id)
    present = versions[0]
    filled_form = form or FormState({name: str(value) for name, value in present.windows._asdict().items()})
    values: dict[str, Any] = {
        "here": visit.url(PATH),
        "present": present,
        "versions": [_describe(visit.format, it) for it in versions],
        "comparison": comparison,
        "differences": [] if comparison is None else _compare(visit.format, comparison),
        "limits": _LIMITS,
    }
    return render_form(visit, "attribution/settings.html", filled_form, **values)


def _describe(formats: Format, version: WindowsVersion) -> tuple[str, str]:
    windows = version.windows
    description = (
        f"{formats.count(windows.click_days, 'day')} after a click, {formats.count(windows.delivery_hours, 'hour')}"
        f" after a text, holdout compared over {formats.count(windows.lift_days, 'day')}"
    )
    if version.created_at is None:
        return description, "Default"
    return description, f"{formats.full_moment(version.created_at)}, {version.created_by or 'the command line'}"


def _compare(formats: Format, comparison: WindowsPreview) -> list[Difference]:
    currencies = sorted(
        {*comparison.before, *comparison.after}, key=lambda it: -comparison.before.get(it, Attributed()).net_cents
    )
    return [
        Difference(
            currency,
            formats.money(before.net_cents, currency),
            formats.money(after.net_cents, currency),
            formats.aligned_delta(after.net_cents, before.net_cents),
            formats.number(before.tickets),
            formats.number(after.tickets),
        )
        for currency in currencies
        for before in [comparison.before.get(currency, Attributed())]
        for after in [comparison.after.get(currency, Attributed())]
    ]
