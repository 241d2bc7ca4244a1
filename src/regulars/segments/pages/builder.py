"""The builder: a segment as it is written, with figures beside every condition."""

import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from starlette.responses import Response

from regulars.accounts.audit.log import actor_of, record
from regulars.conditions.check import EMPTY_GROUP, Fault, Types
from regulars.conditions.forms import draft
from regulars.conditions.forms.draft import Node
from regulars.conditions.forms.fields import node_of
from regulars.conditions.forms.view import (
    Built,
    Choices,
    FormChoices,
    Scene,
    build,
    faults_by_path,
    find_choices,
    fit_tree,
    view,
)
from regulars.conditions.labels import GROUPS, STATES, Labels
from regulars.conditions.tree import Group, Path
from regulars.kit.db import Tx
from regulars.kit.etag import EtagMismatch, etag_of
from regulars.kit.ids import SEGMENT
from regulars.segments.analysis.client import DEADLINE_S, Analysis
from regulars.segments.analysis.protocol import AnalysisUnavailable, NotReady, SegmentQuery
from regulars.segments.columns import lifecycle
from regulars.segments.columns.model import Progress
from regulars.segments.definition import Definition, DefinitionRefused, InUse, SegmentNotFound, read_definition
from regulars.segments.pages.explanations import explain_membership
from regulars.segments.pages.figures import (
    AT_ONCE_S,
    Change,
    Counted,
    Patience,
    ask_difference,
    changes,
    count,
    find_difference,
)
from regulars.segments.pages.member_rows import Person, find_people
from regulars.segments.saved import manage
from regulars.segments.saved.model import Segment, SizeRow
from regulars.segments.saved.resolve import Resolved, query_of, resolve
from regulars.segments.saved.sizes import list_sizes, store_size
from regulars.segments.saved.uses import PATH, DescribeUses, Use, list_uses
from regulars.segments.suggestions import find_suggestions, new_definition
from regulars.web.errors import FormTooLarge, PageNotFound
from regulars.web.form import EditConflict, FormState
from regulars.web.render import redirect, render
from regulars.web.visit import Visit

SAMPLE: Final = 5
SEEDS: Final = 1_000


@dataclass(slots=True, kw_only=True)
class Work:
    """A draft as a form sent it. `was` is the etag of the version that it began with, whatever was saved since."""

    segment: Segment | None
    was: str = ""
    name: str
    root: Node
    new: Path | None = None
    who: str = ""
    seed: int = 0
    refused: Sequence[Fault] = ()
    conflict: EditConflict | None = None


@dataclass(slots=True, kw_only=True)
class _DraftContext:
    """All data of a draft that is read from the tables."""

    attributes: Types
    properties: Types
    built: Built
    resolved: Resolved
    faults: list[Fault]
    offered: FormChoices
    is_changed: bool
    uses: Sequence[Use]
    why: dict[str, Any] | None
    changes: list[Change]
    difference: tuple[SegmentQuery, SegmentQuery] | None
    progress: Progress | None


# The journeys that a condition about texts may name.
ListChoices = Callable[[Tx, UUID], Awaitable[Choices]]


class Builder:
    def __init__(self, analysis: Analysis, describe: Mapping[str, DescribeUses], list_journeys: ListChoices) -> None:
        self._analysis = analysis
        self._describe = describe
        self._list_journeys = list_journeys

    async def begin(self, visit: Visit) -> Response:
        """A new one, from nothing, from one of those to start from, or from the filters of a list."""
        async with visit.database.reading() as tx:
            given = await find_suggestions(tx, visit.organization_id)
        wanted = visit.query.get("from", "")
        chosen = next((it.definition for it in given if it.key == wanted), new_definition())
        if match := visit.query.get("match"):
            with contextlib.suppress(DefinitionRefused):
                chosen = read_definition(f'{{"name": "New segment", "match": {match}}}'.encode())
        return await self._page(visit, _work_of(chosen))

    async def show(self, visit: Visit) -> Response:
        async with visit.database.reading() as tx:
            segment = await find_segment(tx, visit)
        work = _work_of(segment.definition, segment=segment)
        work.who = visit.query.get("who", "").strip()
        work.seed = _seed(visit.query.get("others", ""))
        return await self._page(visit, work)

    async def draft(self, visit: Visit) -> Response:
        """The same page with what was changed; nothing is saved. Only who has no script waits for the figures."""
        return await self._page(visit, await self._read(visit), patience_s=AT_ONCE_S if visit.is_htmx else DEADLINE_S)

    async def save(self, visit: Visit) -> Response:
        work = await self._read(visit)
        built = build(work.root)
        faults = [Fault("", message) for message in built.incomplete.values()]
        if not faults:
            definition = _definition(work.name, built.match)
            if isinstance(definition, Fault):
                faults = [definition]
            else:
                try:
                    return await self._save(visit, work, definition)
                except DefinitionRefused as error:
                    faults = list(error.faults)
                except EtagMismatch:
                    await self._face(visit, work)
        work.refused = faults
        return await self._page(visit, work, status=400 if faults else 409)

    async def _save(self, visit: Visit, work: Work, definition: Definition) -> Response:
        by = visit.user.name
        async with visit.database.transaction() as tx:
            if work.segment is None:
                saved = await manage.create_segment(tx, visit.organization_id, definition, created_by=by)
            else:
                saved = await manage.update_segment(
                    tx,
                    visit.organization_id,
                    work.segment.row.id,
                    definition,
                    created_by=by,
                    etag=work.was,
                )
            act = "segment.create" if work.segment is None else "segment.update"
            await record(
                tx, visit.organization_id, actor_of(visit), act, saved.id, after={"version": saved.row.version}
            )
        return redirect(visit, visit.url(PATH, saved.id), done=f"Saved as version {saved.row.version}.")

    async def _face(self, visit: Visit, work: Work) -> None:
        """The user who was shown the other version may overwrite it, and no later one."""
        async with visit.database.reading() as tx:
            work.segment = saved = await find_segment(tx, visit)
        work.was = etag_of(saved.row.version)
        work.conflict = EditConflict(
            by=saved.version.created_by or "Another user",
            at=visit.format.clock(saved.version.created_at, seconds=True),
            now=f"version {saved.row.version}, “{saved.row.name}”",
            url=visit.url(PATH, saved.id),
        )

    async def ask_to_delete(self, visit: Visit) -> Response:
        async with visit.database.reading() as tx:
            segment = await find_segment(tx, visit)
            uses = await self._uses(tx, visit, segment)
        return _deletion(visit, segment, uses, FormState())

    async def delete(self, visit: Visit) -> Response:
        async with visit.database.transaction() as tx:
            segment = await find_segment(tx, visit)
            try:
                await manage.delete_segment(tx, visit.organization_id, segment.row.id)
            except InUse as error:
                uses = await self._uses(tx, visit, segment)
                form = FormState()
                form.refuse("uses", str(error))
                return _deletion(visit, segment, uses, form)
            before = {"version": segment.row.version}
            await record(tx, visit.organization_id, actor_of(visit), "segment.delete", segment.id, before=before)
        return redirect(visit, visit.url(PATH), done=f"{segment.row.name} is deleted.")

    async def prepare(self, visit: Visit) -> Response:
        """Begin to read the customers before the first segment is saved, so that drafts can be counted."""
        async with visit.database.transaction() as tx:
            await lifecycle.begin(tx, visit.organization_id)
        return redirect(visit, visit.url(PATH, "new"))

    async def _read(self, visit: Visit) -> Work:
        async with visit.database.reading() as tx:
            segment = await find_segment(tx, visit) if visit.references else None
        try:
            root = draft.read_tree(visit.form_lists)
        except draft.TooManyNodes as error:
            raise FormTooLarge(str(error)) from None
        new = draft.apply(root, visit.form.get("act", ""))
        return Work(
            segment=segment,
            was=visit.form.get("was", ""),
            name=visit.form.get("name", "").strip(),
            root=root,
            new=new,
            who=visit.form.get("who", "").strip(),
            seed=_seed(visit.form.get("others") or visit.form.get("seed", "")),
        )

    async def _page(self, visit: Visit, work: Work, *, status: int = 200, patience_s: float = AT_ONCE_S) -> Response:
        """The tables are read first, so that no connection is held during requests to the analysis process.

        The page leaves out responses that miss the deadline, and requests them again.
        """
        async with visit.database.reading() as tx:
            known = await self._load_context(tx, visit, work)
        resolved, built = known.resolved, known.built
        query = query_of(resolved, is_faulty=bool(known.faults))
        patience = Patience(patience_s)
        counted = await count(
            self._analysis, visit.organization_id, query, progress=known.progress, deadline_s=patience.left_s
        )
        is_counted = counted.figures is not None
        wanted = known.difference if is_counted else None
        difference = await find_difference(self._analysis, visit.organization_id, wanted, patience)
        sample = await self._sample(visit, query, counted, work.seed, patience)
        scene = Scene(
            attributes=known.attributes,
            properties=known.properties,
            counts={built.paths[path]: it for path, it in counted.counts.items() if path in built.paths},
            faults=faults_by_path(built, [fault for fault in known.faults if fault.message != EMPTY_GROUP]),
            new=work.new,
            members_url=visit.url(PATH, work.segment.id, "members") if work.segment and not known.is_changed else None,
        )
        values: dict[str, Any] = {
            "segment": work.segment,
            "was": work.was,
            "name": work.name,
            "tree": view(work.root, scene),
            "offered": known.offered,
            "counted": counted,
            "left_out": len(built.incomplete),
            "faults": known.faults,
            "refused": work.refused,
            "conflict": work.conflict,
            "is_changed": known.is_changed,
            "uses": known.uses,
            "sample": sample,
            "is_waiting": not counted.is_without_columns
            and (sample is None or (wanted is not None and difference is None)),
            "seed": work.seed,
            "next_seed": (work.seed + 1) % SEEDS,
            "who": work.who,
            "why": known.why,
            "base": visit.url(PATH, work.segment.id) if work.segment else visit.url(PATH),
            "groups": GROUPS,
            "kinds": known.offered.kinds,
            "states": STATES,
            "difference": difference,
            "changes": known.changes,
            "sizes": await self._sizes(visit, work, known, counted),
        }
        return render(visit, "segments/builder.html", status=status, **values)

    async def _load_context(self, tx: Tx, visit: Visit, work: Work) -> "_DraftContext":
        attributes, properties = await fit_tree(tx, visit.organization_id, work.root)
        built = build(work.root)
        resolved = await resolve(tx, visit.organization_id, built.match)
        others = await manage.list_segments(tx, visit.organization_id)
        own = None if work.segment is None else work.segment.row.id
        offered = await find_choices(
            tx,
            visit.organization_id,
            visit.format.locale.territories,
            segments=[(SEGMENT.encode(it.id), it.name) for it in others if it.id != own],
            journeys=await self._list_journeys(tx, visit.organization_id),
            match=built.match,
        )
        words = Labels(visit.format, offered.names)
        is_changed = _is_changed(work, built.match, is_complete=not built.incomplete)
        segment = work.segment if is_changed else None
        return _DraftContext(
            attributes=attributes,
            properties=properties,
            built=built,
            resolved=resolved,
            # A draft without conditions matches all customers; it is counted, but cannot be saved.
            faults=list(resolved.faults) if built.match.of else [],
            offered=offered,
            is_changed=is_changed,
            uses=[] if work.segment is None else await self._uses(tx, visit, work.segment),
            why=await explain_membership(tx, visit, work.who, resolved, words) if work.who else None,
            changes=[] if segment is None else changes(_as_a_form_says(segment), built.match, words),
            difference=None
            if segment is None
            else await ask_difference(tx, visit.organization_id, draft=resolved, saved=segment),
            progress=await lifecycle.find_progress(tx, visit.organization_id),
        )

    async def _sizes(self, visit: Visit, work: Work, known: "_DraftContext", counted: Counted) -> list[SizeRow]:
        """The sizes of the days; a count of what is saved is today's."""
        if work.segment is None:
            return []
        row, figures = work.segment.row, counted.figures
        async with visit.database.transaction() as tx:
            if figures is not None and not known.is_changed and not known.faults:
                may_be_texted = figures.split.may_be_texted
                await store_size(
                    tx,
                    visit.organization_id,
                    row.id,
                    version=row.version,
                    total=figures.total,
                    may_be_texted=may_be_texted,
                )
            return await list_sizes(tx, visit.organization_id, row.id)

    async def _sample(
        self, visit: Visit, query: SegmentQuery, counted: Counted, seed: int, patience: Patience
    ) -> list[Person] | None:
        """None: not known yet."""
        if counted.figures is None:
            return None
        if counted.figures.total == 0:
            return []
        try:
            found = await self._analysis.sample(
                visit.organization_id, query, seed=seed, limit=SAMPLE, deadline_s=patience.left_s
            )
        except (NotReady, AnalysisUnavailable):
            return None
        async with visit.database.reading() as tx:
            return await find_people(tx, visit, found.profile_ids)

    async def _uses(self, tx: Tx, visit: Visit, segment: Segment) -> Sequence[Use]:
        found = await list_uses(tx, visit.organization_id, [segment.row.id], self._describe)
        return found[segment.row.id]


async def find_segment(tx: Tx, visit: Visit) -> Segment:
    """The segment of the address, inside this organization."""
    identifier = SEGMENT.decode(visit.references[0])
    if identifier is None:
        raise PageNotFound("No segment of this organization has this id.")
    try:
        return await manage.load_segment(tx, visit.organization_id, identifier)
    except SegmentNotFound as error:
        raise PageNotFound("No segment of this organization has this id; it may have been deleted.") from error


def _work_of(definition: Definition, *, segment: Segment | None = None) -> Work:
    was = "" if segment is None else etag_of(segment.row.version)
    return Work(segment=segment, was=was, name=definition.name, root=node_of(definition.match))


def _definition(name: str, match: Any) -> Definition | Fault:
    if not 1 <= len(name) <= 120:  # noqa: PLR2004  # as the definition says
        return Fault("name", "A name has 1 to 120 characters.")
    return Definition(name=name, match=match)


def _is_changed(work: Work, match: Any, *, is_complete: bool) -> bool:
    if work.segment is None:
        return True
    name = work.segment.definition.name.strip()
    return not is_complete or _as_a_form_says(work.segment) != match or name != work.name


def _as_a_form_says(segment: Segment) -> Group:
    """What is saved may be said in other words, such as bought for bought at least once; it means the same."""
    return build(node_of(segment.definition.match)).match


def _deletion(visit: Visit, segment: Segment, uses: Sequence[Use], form: FormState) -> Response:
    status, here = 400 if form.is_refused else 200, visit.url(PATH, segment.id)
    return render(visit, "segments/delete.html", status=status, form=form, segment=segment, uses=uses, here=here)


def _seed(text: str) -> int:
    return int(text) % SEEDS if text.isdecimal() and len(text) < 6 else 0  # noqa: PLR2004  # more digits than seeds
