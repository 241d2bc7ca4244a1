"""The URL paths of the pages and forms of campaigns, and their handlers."""

from functools import partial
from typing import Final

from regulars.campaigns.manage import PATH
from regulars.campaigns.pages import approval_rule, lifecycle, listing, progress, recipients
from regulars.campaigns.pages.approve import ApprovePage
from regulars.campaigns.pages.confirmation import Confirmation
from regulars.campaigns.pages.editor import Editor
from regulars.columns.client import Analysis
from regulars.web.access import Action
from regulars.web.route import LARGE_FORM_BYTES_MAX, Form, Harm, Page

_CAMPAIGN: Final = f"{PATH}/{{campaign}}"
_page = partial(Page, needs=Action.READ)
_edit_page = partial(Page, needs=Action.EDIT_JOURNEYS)
_form = partial(Form, needs=Action.EDIT_JOURNEYS, harm=Harm.CHANGES)

_PAGES: Final[tuple[Page, ...]] = (
    _page(path=PATH, handle=listing.show_campaigns),
    _edit_page(path=f"{PATH}/new", handle=listing.new),
    _form(path=PATH, handle=listing.create),
    Page(path=f"{PATH}/approval", needs=Action.MANAGE_TEXTS, handle=approval_rule.show_approval),
    Form(path=f"{PATH}/approval", needs=Action.MANAGE_TEXTS, handle=approval_rule.save_approval, harm=Harm.CHANGES),
    _page(path=_CAMPAIGN, handle=progress.show_campaign),
    _form(path=f"{_CAMPAIGN}/pause", handle=lifecycle.pause, harm=Harm.STOPS),
    _edit_page(path=f"{_CAMPAIGN}/resume", handle=partial(lifecycle.confirm, "campaigns/resume.html")),
    _form(path=f"{_CAMPAIGN}/resume", handle=lifecycle.resume),
    _edit_page(path=f"{_CAMPAIGN}/cancel", handle=partial(lifecycle.confirm, "campaigns/cancel.html")),
    _form(path=f"{_CAMPAIGN}/cancel", handle=lifecycle.cancel, harm=Harm.STOPS),
    _form(path=f"{_CAMPAIGN}/duplicate", handle=lifecycle.duplicate),
    _form(path=f"{_CAMPAIGN}/follow-up", handle=lifecycle.begin_follow_up),
    _edit_page(path=f"{_CAMPAIGN}/archive", handle=partial(lifecycle.confirm, "campaigns/archive.html")),
    _form(path=f"{_CAMPAIGN}/archive", handle=lifecycle.archive),
    *recipients.RECIPIENTS.pages(f"{_CAMPAIGN}/recipients", needs=Action.READ, file_needs=Action.EDIT_JOURNEYS),
    _edit_page(path=f"{_CAMPAIGN}/proof.jsonl", handle=recipients.export_proof, harm=Harm.EXPORTS),
)


def pages(analysis: Analysis) -> tuple[Page, ...]:
    editor, confirmation, approve_page = Editor(analysis), Confirmation(analysis), ApprovePage(analysis)
    # The editor's form may have four texts in many languages, so it may be large.
    text_form = partial(_form, bytes_max=LARGE_FORM_BYTES_MAX)
    return (
        *_PAGES,
        _edit_page(path=f"{_CAMPAIGN}/edit", handle=editor.show),
        text_form(path=f"{_CAMPAIGN}/edit", handle=editor.save),
        text_form(path=f"{_CAMPAIGN}/edit/measure", handle=editor.measure),
        text_form(path=f"{_CAMPAIGN}/edit/test", handle=editor.test),
        _edit_page(path=f"{_CAMPAIGN}/send", handle=confirmation.show),
        _edit_page(path=f"{_CAMPAIGN}/approve", handle=approve_page.show),
        _form(path=f"{_CAMPAIGN}/approve", handle=approve_page.approve),
        _form(path=f"{_CAMPAIGN}/send", handle=confirmation.send),
        _form(path=f"{_CAMPAIGN}/send/count", handle=confirmation.count_exactly),
    )
