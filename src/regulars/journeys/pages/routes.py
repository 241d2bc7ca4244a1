"""The URL paths of the pages and forms of journeys, and their handlers."""

from functools import partial
from typing import Final

from regulars.conditions.forms.draft import FIELDS_MAX
from regulars.journeys.pages import backtests, journeys, lifecycle, runs
from regulars.journeys.pages.common import PATH
from regulars.journeys.pages.edit import actions, builder, drafts
from regulars.web.access import Action
from regulars.web.route import LARGE_FORM_BYTES_MAX, Form, Harm, Page

_JOURNEY: Final = f"{PATH}/{{journey}}"
_page = partial(Page, needs=Action.READ)
_edit_page = partial(Page, needs=Action.EDIT_JOURNEYS)
_form = partial(Form, needs=Action.EDIT_JOURNEYS, harm=Harm.CHANGES)
# A text may have many languages, so its form may be large.
_text_form = partial(_form, bytes_max=LARGE_FORM_BYTES_MAX)

PAGES: Final[tuple[Page, ...]] = (
    _page(path=PATH, handle=journeys.show_journeys),
    _edit_page(path=f"{PATH}/new", handle=lifecycle.new),
    _form(path=PATH, handle=lifecycle.create),
    _page(path=_JOURNEY, handle=journeys.show_journey),
    _form(path=f"{_JOURNEY}/duplicate", handle=lifecycle.duplicate),
    _edit_page(path=f"{_JOURNEY}/activate", handle=lifecycle.confirm_activate),
    _form(path=f"{_JOURNEY}/activate", handle=lifecycle.submit_activate),
    _edit_page(path=f"{_JOURNEY}/pause", handle=partial(lifecycle.confirm, "journeys/pause.html")),
    _form(path=f"{_JOURNEY}/pause", handle=lifecycle.submit_pause, harm=Harm.STOPS),
    _edit_page(path=f"{_JOURNEY}/end", handle=partial(lifecycle.confirm, "journeys/end.html")),
    _form(path=f"{_JOURNEY}/end", handle=lifecycle.submit_end, harm=Harm.STOPS),
    _page(path=f"{_JOURNEY}/runs", handle=runs.show_runs),
    _page(path=f"{_JOURNEY}/runs/{{run}}", handle=runs.show_run),
    _form(path=f"{_JOURNEY}/runs/{{run}}/resume", handle=runs.resume),
    _page(path=f"{_JOURNEY}/versions", handle=journeys.show_versions),
    _page(path=f"{_JOURNEY}/backtest", handle=backtests.show_backtest),
    _form(path=f"{_JOURNEY}/backtest", handle=backtests.start_backtest),
    _edit_page(path=f"{_JOURNEY}/edit", handle=builder.show_builder),
    _form(path=f"{_JOURNEY}/edit/entry", handle=actions.change_entry),
    _text_form(path=f"{_JOURNEY}/edit/add", handle=actions.add_step),
    _text_form(path=f"{_JOURNEY}/edit/step", handle=actions.change_step),
    _text_form(path=f"{_JOURNEY}/edit/measure", handle=actions.measure_step),
    _text_form(path=f"{_JOURNEY}/edit/test", handle=actions.test_step),
    _form(path=f"{_JOURNEY}/edit/move", handle=actions.move_step),
    _form(path=f"{_JOURNEY}/edit/remove", handle=actions.remove_step, harm=Harm.STOPS),
    _form(
        path=f"{_JOURNEY}/edit/condition",
        handle=actions.change_condition,
        fields_max=FIELDS_MAX,
        bytes_max=LARGE_FORM_BYTES_MAX,
    ),
    _form(path=f"{_JOURNEY}/edit/save", handle=drafts.save),
    _edit_page(path=f"{_JOURNEY}/edit/discard", handle=drafts.confirm_discard),
    _form(path=f"{_JOURNEY}/edit/discard", handle=drafts.discard),
)
