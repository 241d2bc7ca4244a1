"""The page of the global holdout: the percentage of customers who get no campaign texts in a quarter, whether they get
no texts of journeys either (`with_journeys`), and the current quarter."""

from typing import Final

from starlette.responses import Response

from regulars.accounts.audit.log import record_act
from regulars.experiments.holdout.model import PERCENT_MAX, next_quarter, quarter_of
from regulars.experiments.holdout.settings import change_holdout, load_holdout
from regulars.texts.pages.settings import HOLDOUT
from regulars.web.access import Action
from regulars.web.form import FormState
from regulars.web.render import redirect, render_form
from regulars.web.route import Form, Harm, Page
from regulars.web.visit import Visit


async def save_holdout(visit: Visit) -> Response:
    form = FormState(visit.form, again=show_holdout)
    percent = form.integer("percent", minimum=0, maximum=PERCENT_MAX)
    form.check()
    with_journeys = form.is_checked("with_journeys")
    async with visit.database.transaction() as tx:
        before = await load_holdout(tx, visit.organization_id)
        after = await change_holdout(
            tx, visit.organization_id, percent=percent, with_journeys=with_journeys, by=visit.user.email
        )
        await record_act(tx, visit, "texts.holdout", "texts", before=before.as_data(), after=after.as_data())
    return redirect(visit, visit.url(HOLDOUT), done="Holdout saved.")


async def show_holdout(visit: Visit, form: FormState | None = None) -> Response:
    async with visit.database.reading() as tx:
        holdout = await load_holdout(tx, visit.organization_id)
    values = {"percent": str(holdout.percent), "with_journeys": "on" if holdout.with_journeys else ""}
    today = visit.now.astimezone(visit.format.zone).date()
    return render_form(
        visit,
        "experiments/holdout.html",
        form or FormState(values),
        holdout=holdout,
        running=holdout.running,
        percent_max=PERCENT_MAX,
        next_quarter=next_quarter(quarter_of(today)),
        # Whether the customers of the current quarter were chosen, or are being chosen.
        is_drawn=bool(holdout.quarters) and holdout.quarters[0].quarter == quarter_of(today),
    )


PAGES: Final = (
    Page(path=HOLDOUT, needs=Action.READ, handle=show_holdout),
    Form(path=HOLDOUT, needs=Action.MANAGE_TEXTS, handle=save_holdout, harm=Harm.CHANGES),
)
