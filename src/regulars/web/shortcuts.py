"""The page that lists the keyboard shortcuts; the key `?` shows it as a dialog."""

from starlette.responses import Response

from regulars.web.access import Action
from regulars.web.render import render
from regulars.web.route import Page
from regulars.web.visit import Visit

SHORTCUTS_PATH = "/shortcuts"


async def _show_shortcuts(visit: Visit) -> Response:
    return render(visit, "web/shortcuts.html")


PAGES = (Page(path=SHORTCUTS_PATH, needs=Action.READ, handle=_show_shortcuts),)
