"""The form that sets the theme cookie: light, dark, or the system's."""

from starlette.responses import Response

from regulars.web import cookies
from regulars.web.render import redirect
from regulars.web.route import Audience, Form, Harm
from regulars.web.visit import Visit, safe_next

THEME_PATH = "/theme"


async def _set_theme(visit: Visit) -> Response:
    response = redirect(visit, safe_next(visit.form.get("next"), otherwise="/"))
    theme = visit.form.get("theme", "")
    if theme in cookies.THEMES:
        cookies.set_cookie(response, cookies.THEME, theme, is_https=visit.is_https, max_age_s=cookies.THEME_S)
    else:
        cookies.drop_cookie(response, cookies.THEME, is_https=visit.is_https)
    return response


PAGES = (Form(path=THEME_PATH, needs=Audience.OPEN, handle=_set_theme, harm=Harm.CHANGES),)
