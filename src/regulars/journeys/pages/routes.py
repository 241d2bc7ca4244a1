"""Every page and form of journeys."""

from functools import partial
from typing import Final

from regulars.conditions.forms.draft import FIELDS_MAX
from regulars.journeys.pages import backtests, runs
from regulars.journeys.pages import journeys as listing
from regulars.journeys.pages import journeys as show
from regulars.journeys.pages import journeys as versions
from regulars.journeys.pages import lifecycle as life
from regulars.journeys.pages.common import PATH
from regulars.journeys.pages.edit import actions as act
from regulars.journeys.pages.edit import builder
from regulars.journeys.pages.edit import drafts as save
from regulars.web.access import Action
from regulars.web.route import LARGE_FORM_BYTES_MAX, Form, Page

_ONE: Final = f"{PATH}/{{journey}}"
_read = partial(Page, needs=Action.READ)
_ask = partial(Page, needs=Action.EDIT_JOURNEYS)
_do = partial(Form, needs=Action.EDIT_JOURNEYS)

PAGES: Final[tuple[Page, ...]] = (
    _read(path=PATH, handle=listing.show_journeys),
    _ask(path=f"{PATH}/new", handle=life.new),
    _do(path=PATH, handle=life.create),
    _read(path=_ONE, handle=show.show_journey),
    _do(path=f"{_ONE}/duplicate", handle=life.duplicate),
    _ask(path=f"{_ONE}/activate", handle=life.ask_to_activate),
    _do(path=f"{_ONE}/activate", handle=life.make_live),
    _ask(path=f"{_ONE}/pause", handle=life.ask_to_pause),
    _do(path=f"{_ONE}/pause", handle=life.make_paused),
    _ask(path=f"{_ONE}/end", handle=life.ask_to_end),
    _do(path=f"{_ONE}/end", handle=life.make_ended),
    _read(path=f"{_ONE}/runs", handle=runs.show_runs),
    _read(path=f"{_ONE}/runs/{{run}}", handle=runs.show_run),
    _do(path=f"{_ONE}/runs/{{run}}/resume", handle=runs.resume),
    _read(path=f"{_ONE}/versions", handle=versions.show_versions),
    _read(path=f"{_ONE}/backtest", handle=backtests.show_backtest),
    _do(path=f"{_ONE}/backtest", handle=backtests.ask),
    _ask(path=f"{_ONE}/edit", handle=builder.show_builder),
    _do(path=f"{_ONE}/edit/entry", handle=act.change_entry),
    _do(path=f"{_ONE}/edit/add", handle=act.add_step),
    _do(path=f"{_ONE}/edit/step", handle=act.change_step),
    _do(path=f"{_ONE}/edit/measure", handle=act.measure_step),
    _do(path=f"{_ONE}/edit/move", handle=act.move_step),
    _do(path=f"{_ONE}/edit/remove", handle=act.remove_step),
    _do(
        path=f"{_ONE}/edit/condition",
        handle=act.change_rules,
        fields_max=FIELDS_MAX,
        bytes_max=LARGE_FORM_BYTES_MAX,
    ),
    _do(path=f"{_ONE}/edit/save", handle=save.save),
    _ask(path=f"{_ONE}/edit/discard", handle=save.ask_to_discard),
    _do(path=f"{_ONE}/edit/discard", handle=save.discard),
)
