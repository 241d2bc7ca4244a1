"""The page of an organization's settings: name, slug, time zone, locale, country, second factor."""

from typing import Final

from starlette.responses import Response

from regulars.accounts import organization_settings, second_factor
from regulars.accounts.audit.log import actor_of
from regulars.accounts.pages.location_guess import countries, refuse_zone, zones
from regulars.kit.time_zones import time_zones
from regulars.organizations.settings import ForeignZone, NameTaken, OrganizationSettings, find_settings
from regulars.organizations.slugs import SLUG_CHARACTERS_MAX, is_slug
from regulars.web.access import Action
from regulars.web.form import FormState
from regulars.web.format import LOCALES
from regulars.web.render import redirect, render_form
from regulars.web.route import Form, Harm, Page
from regulars.web.visit import Visit

PATH: Final = "/settings/organization"
NAME_CHARACTERS_MAX: Final = 255
TEMPLATE: Final = "accounts/organization.html"


async def show(visit: Visit) -> Response:
    async with visit.database.reading() as tx:
        stored = await find_settings(tx.connection, visit.organization_id)
    values = {
        "name": stored.name,
        "slug": visit.organization.slug,
        "time_zone": stored.time_zone,
        "locale": stored.locale,
        "default_country": stored.default_country or "",
        "requires_second_factor": "on" if stored.requires_second_factor else "",
    }
    return await _render(visit, FormState(values))


async def change(visit: Visit) -> Response:
    form = FormState(visit.form, again=_render)
    name = form.text("name", characters_max=NAME_CHARACTERS_MAX)
    slug = form.text("slug", characters_max=SLUG_CHARACTERS_MAX)
    if slug and not is_slug(slug):
        form.refuse("slug", "Use lower-case letters, digits and single hyphens between them.")
    zone = form.choice("time_zone", set(time_zones()))
    locale = form.choice("locale", set(LOCALES))
    country = form.choice("default_country", {"", *dict(countries())})
    form.check()
    is_required = form.is_checked("requires_second_factor")
    settings = OrganizationSettings(name, zone, locale, country or None, is_required)
    try:
        async with visit.database.transaction() as tx:
            if is_required and not await second_factor.is_enabled(tx, visit.user.id):
                # Otherwise the next click would lock the user out.
                sentence = "Turn on your own second factor first, under Your account."
                raise form.refusal("requires_second_factor", sentence)
            slug = await organization_settings.change_organization(
                tx, visit.organization_id, settings, slug=slug, by=actor_of(visit)
            )
        return redirect(visit, f"/o/{slug}{PATH}", done="The organization is saved.")
    except NameTaken:
        raise form.refusal("name", "Another organization on this server has this name.") from None
    except organization_settings.SlugTaken:
        raise form.refusal("slug", "Another organization has or had this address.") from None
    except ForeignZone as error:
        raise refuse_zone(form, error) from None


async def _render(visit: Visit, form: FormState) -> Response:
    zone_names = [(zone.name, zone.label) for zone in zones()]
    country_names = [("", "None"), *countries()]
    return render_form(visit, TEMPLATE, form, zones=zone_names, locales=LOCALES.items(), countries=country_names)


PAGES: Final = (
    Page(path=PATH, needs=Action.MANAGE_ORGANIZATION, handle=show),
    Form(path=PATH, needs=Action.MANAGE_ORGANIZATION, handle=change, harm=Harm.CHANGES),
)
