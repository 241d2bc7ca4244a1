"""Checks that pages fit their windows, and that axe finds nothing on them."""

from collections.abc import Iterator
from dataclasses import dataclass

from playwright.sync_api import Page
from tests.support.browser import DESKTOP, PHONE, add_axe

VIEWPORTS = {it["width"]: it for it in (PHONE, DESKTOP)}
# The elements that make a page wider than its window, the innermost last, and tables that hide their last column.
TOO_WIDE = """() => [...document.querySelectorAll("body *")].filter((one) => one.matches(".table-wrap")
        ? one.scrollWidth > one.clientWidth + 1
        : document.documentElement.scrollWidth > innerWidth && one.getBoundingClientRect().right > innerWidth + 1
            && !one.closest(".table-wrap, pre, .copy, .tabs"))
    .map((one) => one.outerHTML.slice(0, 150)).slice(-3)"""
# A part of the frame that is the same on another page was checked there, at the same width and with the same rules.
RUN_AXE = """async ([theme, rules]) => {
    document.documentElement.dataset.theme = theme
    const wasChecked = (part) => {
        const html = part.outerHTML.replace(/<input type="hidden"[^>]*>/g, "")
        const key = ["checked", innerWidth, theme, rules, html].join()
        const before = sessionStorage.getItem(key)
        sessionStorage.setItem(key, "yes")
        return before !== null
    }
    const frame = [...document.querySelectorAll(".side > :not(.side-nav), .side-nav > li, .tabbar > *")]
    const chosen = rules ? {runOnly: {type: "rule", values: rules}} : {}
    const context = {include: [document], exclude: frame.filter(wasChecked)}
    return (await axe.run(context, {resultTypes: ["violations"], ...chosen})).violations
}"""
# The themes differ in nothing but colours, so the second one runs only the rules about them. Which those are, axe says
# by a tag; the third of them asks for more than the rest do and is off by itself.
COLOUR_RULES = ["color-contrast", "link-in-text-block"]


@dataclass(frozen=True)
class Look:
    """A page at one width, with axe in these themes."""

    width: int
    themes: tuple[str, ...] = ()


EVERY_LOOK = (Look(390, ("light", "dark")), Look(768), Look(1920), Look(1280, ("light", "dark")))


def examine(tab: Page, address: str, looks: tuple[Look, ...] = EVERY_LOOK) -> Iterator[tuple[str, ...]]:
    """What is wrong with a page. It is opened once, as switching needs no more."""
    # Colours are looked at when they have changed, and not on their way.
    tab.emulate_media(reduced_motion="reduce")
    _set_width(tab, looks[0].width)
    tab.goto(address)
    add_axe(tab)
    for look in looks:
        _set_width(tab, look.width)
        for element in tab.evaluate(TOO_WIDE):
            yield f"{look.width} wide", "does not fit", element
        for found in find_violations(tab, look.themes):
            yield f"{look.width} wide", *found


def find_violations(tab: Page, themes: tuple[str, ...] = ("light", "dark")) -> Iterator[tuple[str, ...]]:
    """What axe finds on a page to which it was added: by all rules in the first theme, by those about colours in others."""
    for theme in themes:
        rules = None if theme == themes[0] else COLOUR_RULES
        for one in tab.evaluate(RUN_AXE, [theme, rules]):
            for node in one["nodes"][:3]:
                yield theme, one["id"], node["html"][:200], node["failureSummary"][:300]


def _set_width(tab: Page, width: int) -> None:
    size = VIEWPORTS.get(width, {**DESKTOP, "width": width})
    if tab.viewport_size != size:
        tab.set_viewport_size(size)
