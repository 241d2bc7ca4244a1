"""The page that deletes a segment, unless something uses it."""

from collections.abc import Mapping, Sequence

from starlette.responses import Response

from regulars.accounts.audit.log import actor_of, record
from regulars.kit.db import Tx
from regulars.segments.definition import InUse
from regulars.segments.pages.builder import find_segment
from regulars.segments.saved import manage
from regulars.segments.saved.model import Segment
from regulars.segments.saved.uses import PATH, DescribeUses, Use, list_uses
from regulars.web.form import FormState
from regulars.web.render import redirect, render
from regulars.web.visit import Visit


class Deletion:
    def __init__(self, describe_uses: Mapping[str, DescribeUses]) -> None:
        self._describe_uses = describe_uses

    async def ask(self, visit: Visit) -> Response:
        async with visit.database.reading() as tx:
            segment = await find_segment(tx, visit)
            uses = await self._list_uses(tx, visit, segment)
        return _render(visit, segment, uses, FormState())

    async def delete(self, visit: Visit) -> Response:
        async with visit.database.transaction() as tx:
            segment = await find_segment(tx, visit)
            try:
                await manage.delete_segment(tx, visit.organization_id, segment.row.id)
            except InUse as error:
                uses = await self._list_uses(tx, visit, segment)
                form = FormState()
                form.refuse("uses", str(error))
                return _render(visit, segment, uses, form)
            before = {"version": segment.row.version}
            await record(tx, visit.organization_id, actor_of(visit), "segment.delete", segment.id, before=before)
        return redirect(visit, visit.url(PATH), done=f"{segment.row.name} is deleted.")

    async def _list_uses(self, tx: Tx, visit: Visit, segment: Segment) -> Sequence[Use]:
        uses = await list_uses(tx, visit.organization_id, [segment.row.id], self._describe_uses)
        return uses[segment.row.id]


def _render(visit: Visit, segment: Segment, uses: Sequence[Use], form: FormState) -> Response:
    status, url = 400 if form.is_refused else 200, visit.url(PATH, segment.id)
    return render(visit, "segments/delete.html", status=status, form=form, segment=segment, uses=uses, here=url)
