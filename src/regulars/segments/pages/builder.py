"""The page that edits a segment: the draft of its conditions, with counts for every condition."""

import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from starlette.responses import Response

from regulars.accounts.audit.log import record_act
from regulars.columns import lifecycle
from regulars.columns.client import DEADLINE_S, Analysis
from regulars.columns.model import BuildProgress
from regulars.columns.protocol import AnalysisUnavailable, NotReady, SegmentQuery
from regulars.conditions.check import EMPTY_GROUP, Fault, Types
from regulars.conditions.documents import DefinitionRefused
from regulars.conditions.field_suggestions import SUGGESTIONS_PATH
from regulars.conditions.forms import draft
from regulars.conditions.forms.fields import node_of
from regulars.conditions.forms.node import Node
from regulars.conditions.forms.typed import append_typed
from regulars.conditions.forms.view import (
    BuiltDefinition,
    Choices,
    FormChoices,
    TreeContext,
    build,
    faults_by_path,
    find_choices,
    fit_tree,
    view,
)
from regulars.conditions.labels import GROUPS, STATES, Labels
from regulars.conditions.tree import Group, Path
from regulars.kit.db import Tx
from regulars.kit.etag import EtagMismatch, etag_of, require_etag
from regulars.kit.ids import SEGMENT
from regulars.segments.definition import Definition, read_definition
from regulars.segments.pages.explanations import explain_membership
from regulars.segments.pages.figures import (
    PAGE_WAIT_S,
    ConditionChange,
    CountResult,
    TimeBudget,
    build_difference_queries,
    count,
    find_changes,
    find_difference,
)
from regulars.segments.pages.member_rows import MemberRow, load_member_rows
from regulars.segments.pages.save_question import SaveQuestion
from regulars.segments.saved import manage
from regulars.segments.saved.model import Segment, SizeRow
from regulars.segments.saved.resolve import ResolvedSegment, query_of, resolve
from regulars.segments.saved.sizes import list_sizes, store_size
from regulars.segments.saved.uses import PATH, DescribeUses, Use, list_uses
from regulars.segments.suggestions import find_suggestions, new_definition
from regulars.web.form import EditConflict
from regulars.web.render import redirect, render
from regulars.web.visit import Visit

SAMPLE_MEMBERS: Final = 5
SEEDS: Final = 1_000


@dataclass(slots=True, kw_only=True)
class SegmentEdit:
    """A draft as the form sent it. `base_etag` is the etag of the version that the user began to edit, `new` the path
    of a new condition, `who` names the customer whose membership is explained, `seed` selects the sample of members."""

    segment: Segment | None
    base_etag: str = ""
    name: str
    root: Node
    new: Path | None = None
    who: str = ""
    seed: int = 0
    refused: Sequence[Fault] = ()
    conflict: EditConflict | None = None


@dataclass(slots=True, kw_only=True)
class _DraftContext:
    """The data that the page reads from the database."""

    attributes: Types
    properties: Types
    built: BuiltDefinition
    resolved: ResolvedSegment
    faults: list[Fault]
    offered: FormChoices
    is_changed: bool
    uses: Sequence[Use]
    explanation: dict[str, Any] | None
    changes: list[ConditionChange]
    difference_queries: tuple[SegmentQuery, SegmentQuery] | None
    progress: BuildProgress | None


# Lists the journeys that a condition about texts may name.
ListChoices = Callable[[Tx, UUID], Awaitable[Choices]]


class Builder:
    def __init__(
        self,
        analysis: Analysis,
        describe: Mapping[str, DescribeUses],
        list_journeys: ListChoices,
        question: SaveQuestion,
    ) -> None:
        self._analysis = analysis
        self._describe_uses = describe
        self._list_journeys = list_journeys
        self._question = question

    async def begin(self, visit: Visit) -> Response:
        """The page of a new segment; the URL may name a suggested segment (`from`) or have conditions (`match`)."""
        async with visit.database.reading() as tx:
            suggestions = await find_suggestions(tx, visit.organization_id)
        key = visit.query.get("from", "")
        chosen = next((suggestion.definition for suggestion in suggestions if suggestion.key == key), new_definition())
        if match := visit.query.get("match"):
            with contextlib.suppress(DefinitionRefused):
                chosen = read_definition(f'{{"name": "New segment", "match": {match}}}'.encode())
        return await self._render_page(visit, _edit_of(chosen))

    async def show(self, visit: Visit) -> Response:
        async with visit.database.reading() as tx:
            segment = await find_segment(tx, visit)
        edit = _edit_of(segment.definition, segment=segment)
        edit.who = visit.query.get("who", "").strip()
        edit.seed = _read_seed(visit.query.get("others", ""))
        return await self._render_page(visit, edit)

    async def draft(self, visit: Visit) -> Response:
        """The page with the changed draft, which is not saved. Without JavaScript the response waits for the counts."""
        wait_s = PAGE_WAIT_S if visit.is_htmx else DEADLINE_S
        return await self._render_page(visit, await self._read_edit(visit), wait_s=wait_s)

    async def save(self, visit: Visit) -> Response:
        edit = await self._read_edit(visit)
        built = build(edit.root)
        faults = [Fault("", message) for message in built.incomplete.values()]
        if not faults:
            definition = _build_definition(edit.name, built.match)
            if isinstance(definition, Fault):
                faults = [definition]
            else:
                try:
                    return await self._save(visit, edit, definition)
                except DefinitionRefused as error:
                    faults = list(error.faults)
                except EtagMismatch:
                    await self._show_conflict(visit, edit)
        edit.refused = faults
        return await self._render_page(visit, edit, status=400 if faults else 409)

    async def _save(self, visit: Visit, edit: SegmentEdit, definition: Definition) -> Response:
        user_name, segment = visit.user.email, edit.segment
        if segment is not None and not _is_changed(edit, definition.match, is_complete=True):
            done = f"Nothing was changed, so it is still version {segment.row.version}."
            return redirect(visit, visit.url(PATH, segment.id), done=done)
        if segment is not None and (segment.damage or _as_form_writes(segment) != definition.match):
            require_etag(segment.row.version, edit.base_etag)
            if (question := await self._question.ask(visit, segment, definition)) is not None:
                return question
        async with visit.database.transaction() as tx:
            if edit.segment is None:
                saved = await manage.create_segment(tx, visit.organization_id, definition, created_by=user_name)
            else:
                saved = await manage.update_segment(
                    tx,
                    visit.organization_id,
                    edit.segment.row.id,
                    definition,
                    created_by=user_name,
                    etag=edit.base_etag,
                )
            act = "segment.create" if edit.segment is None else "segment.update"
            await record_act(tx, visit, act, saved.id, after={"version": saved.row.version})
        return redirect(visit, visit.url(PATH, saved.id), done=f"Saved as version {saved.row.version}.")

    async def _show_conflict(self, visit: Visit, edit: SegmentEdit) -> None:
        """Show that another version was saved meanwhile; the user may overwrite this version, but no later one."""
        async with visit.database.reading() as tx:
            edit.segment = saved = await find_segment(tx, visit)
        edit.base_etag = etag_of(saved.row.version)
        edit.conflict = EditConflict(
            by=saved.version.created_by or "Another user",
            at=visit.format.clock(saved.version.created_at, seconds=True),
            now=f"version {saved.row.version}, “{saved.row.name}”",
            url=visit.url(PATH, saved.id),
        )

    async def prepare(self, visit: Visit) -> Response:
        """Start the build of the columnar data before the first segment is saved, so that drafts can be counted."""
        async with visit.database.transaction() as tx:
            await lifecycle.begin(tx, visit.organization_id)
        return redirect(visit, visit.url(PATH, "new"))

    async def _read_edit(self, visit: Visit) -> SegmentEdit:
        root = draft.read_tree(visit.form_lists)
        new = draft.apply_action(root, visit.form.get("act", ""))
        async with visit.database.reading() as tx:
            segment = await find_segment(tx, visit) if visit.references else None
            await append_typed(tx, visit.organization_id, root)
        return SegmentEdit(
            segment=segment,
            base_etag=visit.form.get("was", ""),
            name=visit.form.get("name", "").strip(),
            root=root,
            new=new,
            who=visit.form.get("who", "").strip(),
            seed=_read_seed(visit.form.get("others") or visit.form.get("seed", "")),
        )

    async def _render_page(
        self, visit: Visit, edit: SegmentEdit, *, status: int = 200, wait_s: float = PAGE_WAIT_S
    ) -> Response:
        """Render the page, without counts that take longer than `wait_s`; the browser requests it again. No database
        connection is held during requests to the analysis process."""
        async with visit.database.reading() as tx:
            context = await self._load_context(tx, visit, edit)
        resolved, built = context.resolved, context.built
        query = query_of(resolved, is_faulty=bool(context.faults))
        time_budget = TimeBudget(wait_s)
        counted = await count(
            self._analysis, visit.organization_id, query, progress=context.progress, deadline_s=time_budget.left_s
        )
        is_counted = counted.figures is not None
        difference_queries = context.difference_queries if is_counted else None
        difference = await find_difference(self._analysis, visit.organization_id, difference_queries, time_budget)
        sample = await self._find_sample(visit, query, counted, edit.seed, time_budget)
        tree_context = TreeContext(
            attributes=context.attributes,
            properties=context.properties,
            counts={built.paths[path]: counts for path, counts in counted.counts.items() if path in built.paths},
            faults=faults_by_path(built, [fault for fault in context.faults if fault.message != EMPTY_GROUP]),
            new=edit.new,
            suggest_url=visit.url(SUGGESTIONS_PATH),
            members_url=visit.url(PATH, edit.segment.id, "members")
            if edit.segment and not context.is_changed
            else None,
        )
        values: dict[str, Any] = {
            "segment": edit.segment,
            "was": edit.base_etag,
            "name": edit.name,
            "is_opened": edit.segment is None and not visit.form,
            "tree": view(edit.root, tree_context),
            "offered": context.offered,
            "counted": counted,
            "incomplete_count": len(built.incomplete),
            "faults": context.faults,
            "refused": edit.refused,
            "conflict": edit.conflict,
            "is_changed": context.is_changed,
            "uses": context.uses,
            "sample": sample,
            "is_waiting": not counted.is_without_columns
            and (sample is None or (difference_queries is not None and difference is None)),
            "seed": edit.seed,
            "next_seed": (edit.seed + 1) % SEEDS,
            "who": edit.who,
            "why": context.explanation,
            "base": visit.url(PATH, edit.segment.id) if edit.segment else visit.url(PATH),
            "groups": GROUPS,
            "kinds": context.offered.kinds,
            "states": STATES,
            "difference": difference,
            "changes": context.changes,
            "sizes": await self._store_and_list_sizes(visit, edit, context, counted),
        }
        return render(visit, "segments/builder.html", status=status, **values)

    async def _load_context(self, tx: Tx, visit: Visit, edit: SegmentEdit) -> "_DraftContext":
        attributes, properties = await fit_tree(tx, visit.organization_id, edit.root)
        built = build(edit.root)
        # Until a damaged segment is saved again, it has no members.
        damage = () if edit.segment is None else edit.segment.damage
        resolved = await resolve(tx, visit.organization_id, built.match, damage=damage)
        all_segments = await manage.list_segments(tx, visit.organization_id)
        own_id = None if edit.segment is None else edit.segment.row.id
        offered = await find_choices(
            tx,
            visit.organization_id,
            visit.format.locale.territories,
            edit.root,
            segments=[(SEGMENT.encode(row.id), row.name) for row in all_segments if row.id != own_id],
            journeys=await self._list_journeys(tx, visit.organization_id),
            also=None if edit.segment is None else edit.segment.definition.match,
        )
        labels = Labels(visit.format, offered)
        is_changed = _is_changed(edit, built.match, is_complete=not built.incomplete)
        segment = edit.segment if is_changed else None
        return _DraftContext(
            attributes=attributes,
            properties=properties,
            built=built,
            resolved=resolved,
            # A draft without conditions matches all customers; it is counted, but cannot be saved.
            faults=list(resolved.faults if built.match.of else damage),
            offered=offered,
            is_changed=is_changed,
            uses=[] if edit.segment is None else await self._list_uses(tx, visit, edit.segment),
            explanation=await explain_membership(tx, visit, edit.who, resolved, labels) if edit.who else None,
            changes=[] if segment is None else find_changes(_as_form_writes(segment), built.match, labels),
            difference_queries=None
            if segment is None
            else await build_difference_queries(tx, visit.organization_id, draft=resolved, saved=segment),
            progress=await lifecycle.find_build_progress(tx, visit.organization_id),
        )

    async def _store_and_list_sizes(
        self, visit: Visit, edit: SegmentEdit, context: "_DraftContext", counted: CountResult
    ) -> list[SizeRow]:
        """List the size on each day; if the page shows the saved version, store its count as today's size."""
        if edit.segment is None:
            return []
        row, figures = edit.segment.row, counted.figures
        async with visit.database.transaction() as tx:
            if figures is not None and not context.is_changed and not context.faults:
                await store_size(tx, visit.organization_id, row.id, figures, version=row.version)
            return await list_sizes(tx, visit.organization_id, row.id)

    async def _find_sample(
        self, visit: Visit, query: SegmentQuery, counted: CountResult, seed: int, time_budget: TimeBudget
    ) -> list[MemberRow] | None:
        """Find random members; None if they are not known yet."""
        if counted.figures is None:
            return None
        if counted.figures.total == 0:
            return []
        try:
            members = await self._analysis.sample(
                visit.organization_id, query, seed=seed, limit=SAMPLE_MEMBERS, deadline_s=time_budget.left_s
            )
        except (NotReady, AnalysisUnavailable):
            return None
        async with visit.database.reading() as tx:
            return await load_member_rows(tx, visit, members.profile_ids)

    async def _list_uses(self, tx: Tx, visit: Visit, segment: Segment) -> Sequence[Use]:
        uses = await list_uses(tx, visit.organization_id, [segment.row.id], self._describe_uses)
        return uses[segment.row.id]


async def find_segment(tx: Tx, visit: Visit) -> Segment:
    """The segment that the URL names, in this organization."""
    identifier = visit.read_id(SEGMENT, "No segment of this organization has this id.")
    return await manage.load_segment(tx, visit.organization_id, identifier)


def _edit_of(definition: Definition, *, segment: Segment | None = None) -> SegmentEdit:
    base_etag = "" if segment is None else etag_of(segment.row.version)
    return SegmentEdit(segment=segment, base_etag=base_etag, name=definition.name, root=node_of(definition.match))


def _build_definition(name: str, match: Any) -> Definition | Fault:
    if not 1 <= len(name) <= 120:  # noqa: PLR2004  # the limits of `Name`
        return Fault("name", "A name has 1 to 120 characters.")
    return Definition(name=name, match=match)


def _is_changed(edit: SegmentEdit, match: Any, *, is_complete: bool) -> bool:
    if edit.segment is None or edit.segment.damage:
        return True
    name = edit.segment.definition.name.strip()
    return not is_complete or _as_form_writes(edit.segment) != match or name != edit.name


def _as_form_writes(segment: Segment) -> Group:
    """The saved conditions as the form would write them, such as "bought at least once" instead of "bought", for a
    comparison with the draft."""
    return build(node_of(segment.definition.match)).match


def _read_seed(text: str) -> int:
    return int(text) % SEEDS if text.isdecimal() and len(text) < 6 else 0  # noqa: PLR2004  # more digits than seeds
