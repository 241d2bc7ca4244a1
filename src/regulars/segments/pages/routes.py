"""The routes of the pages of segments."""

from collections.abc import Mapping
from functools import partial

from starlette.responses import Response

from regulars.columns.client import Analysis
from regulars.conditions.field_suggestions import SUGGESTIONS_PATH
from regulars.conditions.forms.draft import FIELDS_MAX
from regulars.segments.pages.builder import Builder, ListChoices
from regulars.segments.pages.deletion import Deletion
from regulars.segments.pages.listing import Listing
from regulars.segments.pages.members import MemberPages
from regulars.segments.pages.save_question import SaveQuestion
from regulars.segments.pages.suggestion_list import suggest
from regulars.segments.saved.uses import PATH, DescribeUses, FindActiveUsers, describe_segments
from regulars.web.access import Action
from regulars.web.route import LARGE_FORM_BYTES_MAX, Form, Harm, Page
from regulars.web.visit import Visit


def pages(
    analysis: Analysis,
    *,
    describe_uses: Mapping[str, DescribeUses] | None = None,
    find_active_users: Mapping[str, FindActiveUsers] | None = None,
    list_journeys: ListChoices,
) -> tuple[Page, ...]:
    """`describe_uses` has for each kind of object that uses segments, such as journeys, the function that describes
    these objects, and `find_active_users` the function that finds the live or scheduled ones; `list_journeys` lists the
    journeys that a condition may name."""
    describe_by_kind = {"segment": describe_segments, **(describe_uses or {})}
    builder = Builder(analysis, describe_by_kind, list_journeys, SaveQuestion(analysis, find_active_users or {}))
    listing = Listing(analysis, describe_by_kind)
    deletion, members = Deletion(describe_by_kind), MemberPages(analysis, describe_by_kind)

    async def show(visit: Visit) -> Response:
        """Show the builder, or a summary to users who may not edit segments."""
        return await (builder.show if visit.may(Action.EDIT_SEGMENTS) else members.summary)(visit)

    read, edit, segment_path = Action.READ_SEGMENTS, Action.EDIT_SEGMENTS, f"{PATH}/{{segment}}"
    tree_form = partial(Form, needs=edit, fields_max=FIELDS_MAX, bytes_max=LARGE_FORM_BYTES_MAX, harm=Harm.CHANGES)
    return (
        Form(path=SUGGESTIONS_PATH, needs=read, handle=suggest, harm=Harm.CHANGES),
        Page(path=PATH, needs=read, handle=listing.show),
        Form(path=f"{PATH}/count", needs=read, handle=listing.count_all, harm=Harm.CHANGES),
        Form(path=f"{PATH}/prepare", needs=edit, handle=builder.prepare, harm=Harm.CHANGES),
        Page(path=f"{PATH}/new", needs=edit, handle=builder.begin),
        tree_form(path=f"{PATH}/draft", handle=builder.draft),
        tree_form(path=f"{PATH}/save", handle=builder.save),
        Page(path=segment_path, needs=read, handle=show),
        tree_form(path=f"{segment_path}/draft", handle=builder.draft),
        tree_form(path=f"{segment_path}/save", handle=builder.save),
        Page(path=f"{segment_path}/members", needs=read, handle=members.show),
        Page(path=f"{segment_path}/members.csv", needs=edit, handle=members.export, harm=Harm.EXPORTS),
        Page(path=f"{segment_path}/delete", needs=edit, handle=deletion.ask),
        Form(path=f"{segment_path}/delete", needs=edit, handle=deletion.delete, harm=Harm.STOPS),
    )
