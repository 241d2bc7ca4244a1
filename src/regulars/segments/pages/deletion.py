"""The page that deletes a segment, unless something uses it."""

from collections.abc import Mapping

from starlette.responses import Response

from regulars.accounts.audit.log import record_act
from regulars.kit.refusals import NotPossible
from regulars.segments.pages.builder import find_segment
from regulars.segments.saved import manage
from regulars.segments.saved.uses import PATH, DescribeUses, list_uses
from regulars.web.form import FormState
from regulars.web.render import redirect, render_form
from regulars.web.visit import Visit


class Deletion:
    def __init__(self, describe_uses: Mapping[str, DescribeUses]) -> None:
        self._describe_uses = describe_uses

    async def ask(self, visit: Visit, form: FormState | None = None) -> Response:
        async with visit.database.reading() as tx:
            segment = await find_segment(tx, visit)
            uses = await list_uses(tx, visit.organization_id, [segment.row.id], self._describe_uses)
        values = {"segment": segment, "uses": uses[segment.row.id], "here": visit.url(PATH, segment.id)}
        return render_form(visit, "segments/delete.html", form or FormState(), **values)

    async def delete(self, visit: Visit) -> Response:
        async with visit.database.transaction() as tx:
            segment = await find_segment(tx, visit)
            with FormState(again=self.ask).refusing("uses", NotPossible):
                await manage.delete_segment(tx, visit.organization_id, segment.row.id)
            await record_act(tx, visit, "segment.delete", segment.id, before={"version": segment.row.version})
        return redirect(visit, visit.url(PATH), done=f"{segment.row.name} is deleted.")
