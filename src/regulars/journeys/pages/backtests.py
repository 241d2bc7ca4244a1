"""The backtest page of a journey: a user requests a backtest, follows its progress and reads its report."""

from collections.abc import Mapping
from datetime import date
from typing import Any, Final, NamedTuple

from starlette.responses import Response

from regulars.accounts.audit.log import record_act
from regulars.journeys.backtest.requests import BacktestRow, find_backtest, request_backtest
from regulars.journeys.backtest.run import DAYS_MAX
from regulars.journeys.drafts import Draft, load_draft
from regulars.journeys.pages.common import journey_url, read_journey_id, render_journey
from regulars.journeys.pages.trace import label_outcome
from regulars.journeys.stats import load_total_stats
from regulars.kit.clock import parse_timestamp
from regulars.kit.db import Tx
from regulars.kit.ids import JOURNEY, PROFILE
from regulars.profiles.search import find_profiles_by_ids
from regulars.texts.labels import name_reason
from regulars.web import mask
from regulars.web.charts import stack_sections
from regulars.web.errors import Conflict
from regulars.web.form import FormState
from regulars.web.render import redirect
from regulars.web.visit import Visit

DEFAULT_DAYS: Final = 30
FACTS: Final = {
    "purchase": "Purchases of known customers",
    "return": "Returns of known customers",
    "opt_in": "Opt-ins and opt-outs",
}
# The labels of counts of the report; the page can list the customers of each count.
OPENED: Final = {"entries": "Would enter", "texts": "Would be texted"}
STAYED_OUT: Final = {
    "too old": "Recorded more than 7 days late",
    "filter": "Did not match the conditions",
    "filter cannot be judged": "Conditions could not be checked",
    "already in it": "Were already in the journey",
    "reentry": "Had entered before",
}


class BarSection(NamedTuple):
    """A section of the bar chart of texts. `figure` is the name under which the report lists its customers, `kind` the
    CSS class."""

    figure: str
    label: str
    number: int
    kind: str
    x: float
    width: float


async def show_backtest(visit: Visit, form: FormState | None = None) -> Response:
    async with visit.database.reading() as tx:
        draft = await load_draft(tx, visit.organization_id, read_journey_id(visit))
        request = await find_backtest(tx, visit.organization_id, draft.row.id)
        sums = await load_total_stats(tx, visit.organization_id, [draft.row.id])
        people = await _find_people(tx, visit, request)
    if form is None:
        form = FormState({"days": str(request.days if request else DEFAULT_DAYS), "of": visit.query.get("of", "")})
    return render_journey(
        visit,
        "journeys/backtest.html",
        draft.row,
        status=400 if form.is_refused else 200,
        form=form,
        people=people,
        entered=sums[draft.row.id].entered,
        **_template_values(visit, draft, request),
    )


async def _find_people(tx: Tx, visit: Visit, request: BacktestRow | None) -> list[tuple[str, str]]:
    """The ids and names of the customers behind the count of the report that the URL names."""
    report = {} if request is None or request.report is None else request.report
    canonical_ids = report.get("people", {}).get(visit.query.get("people", ""), [])
    profiles = await find_profiles_by_ids(tx, visit.organization_id, PROFILE.decode_all(canonical_ids))
    return [(PROFILE.encode(profile.id), mask.make_match(visit, profile).name) for profile in profiles]


async def start_backtest(visit: Visit) -> Response:
    form = FormState(visit.form, again=show_backtest)
    days = form.integer("days", minimum=1, maximum=DAYS_MAX)
    form.check()
    async with visit.database.transaction() as tx:
        draft = await load_draft(tx, visit.organization_id, read_journey_id(visit))
        if draft.faults:
            raise Conflict("Fix the faults of the journey before you run a backtest; the builder shows them.")
        await request_backtest(
            tx,
            visit.organization_id,
            draft.row.id,
            draft.definition,
            version=None if draft.has_changes else draft.row.version,
            revision=draft.stored.revision if draft.has_changes else None,
            days=days,
            by=visit.user.email,
        )
        await record_act(tx, visit, "journey.backtest", JOURNEY.encode(draft.row.id), after={"days": days})
    return redirect(visit, journey_url(visit, draft.row, "backtest"))


def _template_values(visit: Visit, draft: Draft, request: BacktestRow | None) -> dict[str, Any]:
    report: Mapping[str, Any] | None = request.report if request is not None else None
    # The count of the report whose customers the page lists.
    opened = visit.query.get("people", "")
    return {
        "draft": draft,
        "request": request,
        "report": report,
        "is_running": request is not None and request.ended_at is None,
        "is_old": request is not None and not is_current(request, draft),
        "facts_played": FACTS[draft.definition.trigger],
        "opened": OPENED.get(opened) or STAYED_OUT.get(opened) or _describe_skip(opened),
        "shares": [] if report is None else _list_sections(report),
        "stayed_out": [] if report is None else _count_no_entries(report),
        "since": None if report is None else parse_timestamp(report["since"]),
        "until": None if report is None else parse_timestamp(report["until"]),
        "as_day": date.fromisoformat,
        "label_outcome": label_outcome,
    }


def is_current(request: BacktestRow, draft: Draft) -> bool:
    """Whether the backtest used the current draft, or the latest version if the draft is unchanged."""
    if draft.has_changes:
        return request.revision == draft.stored.revision
    return request.version == draft.row.version


def _describe_skip(reason: str) -> str:
    return f"Skipped: {name_reason(reason.partition(':')[0])}"


def _list_sections(report: Mapping[str, Any]) -> list[BarSection]:
    """The sections of the bar chart of texts: sent, and skipped by reason."""
    parts = [("texts", "Would be sent", int(report["texts"]), "")]
    kinds = ("is-past", "is-2", "is-3", "is-4")
    skipped = sorted(report["skipped"].items(), key=lambda it: -it[1])
    parts += [(it, _describe_skip(it), count, kinds[min(index, 3)]) for index, (it, count) in enumerate(skipped)]
    sections = stack_sections([number for _, _, number, _ in parts])
    return [BarSection(*part, *section) for part, section in zip(parts, sections, strict=True)]


def _count_no_entries(report: Mapping[str, Any]) -> list[tuple[str, str, int]]:
    """Why customers would not have entered: key, label and number, the largest first."""
    counts = sorted(report["not_entered"].items(), key=lambda it: -it[1])
    return [(reason, STAYED_OUT.get(reason, reason), count) for reason, count in counts]
