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
# Without `preload`, which reads all style sheets and media again for two rules: one is off, and one is about sounds.
# A part of the frame that is the same on another page was checked there, at the same width and with the same rules.
# With another width, only what was not visible at that width is checked.
RUN_AXE = """async ([theme, rules, otherWidth]) => {
    document.documentElement.dataset.theme = theme
    const wasChecked = (part) => {
        const html = part.outerHTML.replace(/<input type="hidden"[^>]*>/g, "")
        const key = ["checked", innerWidth, theme, rules, html].join()
        const before = sessionStorage.getItem(key)
        sessionStorage.setItem(key, "yes")
        return before !== null
    }
    const frame = [...document.querySelectorAll(".side > :not(.side-nav), .side-nav > li, .tabbar > *")]
    const exclude = frame.filter(wasChecked)
    const visible = [...document.querySelectorAll("body *")].filter((one) => one.checkVisibility({visibilityProperty: true}))
    window.visibleAt = {...window.visibleAt, [innerWidth]: new Set(visible)}
    let include = [document]
    if (otherWidth) {
        const before = window.visibleAt[otherWidth]
        const isNew = (one) => one !== document.body && !before.has(one)
        include = visible.filter((one) => isNew(one) && !isNew(one.parentElement) && !exclude.some((part) => part.contains(one)))
        if (!include.length) return []
    }
    const chosen = rules ? {runOnly: {type: "rule", values: rules}} : {}
    return (await axe.run({include, exclude}, {resultTypes: ["violations"], preload: false, ...chosen})).violations
}"""
# The themes differ in nothing but colours, so the second one runs only the rules about them. Which those are, axe says
# by a tag; the third of them asks for more than the rest do and is off by itself.
COLOUR_RULES = ["color-contrast", "link-in-text-block"]


@dataclass(frozen=True)
class Look:
    """A page at one width, with axe in this theme."""

    width: int
    theme: str = ""


EVERY_LOOK = (Look(768), Look(1920), Look(390, "light"), Look(1280, "dark"))


def examine(tab: Page, address: str) -> Iterator[tuple[str, ...]]:
    """What is wrong with a page. It is opened once, as switching needs no more.

    No width changes a colour. So each theme runs at one width, and at the other one only on what is visible there alone.
    """
    # Colours are looked at when they have changed, and not on their way.
    tab.emulate_media(reduced_motion="reduce")
    _set_width(tab, EVERY_LOOK[0].width)
    tab.goto(address)
    add_axe(tab)
    for look in EVERY_LOOK:
        _set_width(tab, look.width)
        for element in tab.evaluate(TOO_WIDE):
            yield f"{look.width} wide", "does not fit", element
        if look.theme:
            for found in _run_axe(tab, look.theme):
                yield f"{look.width} wide", *found
    *_, first, second = EVERY_LOOK
    for look, other in ((second, first), (first, second)):
        _set_width(tab, look.width)
        for found in _run_axe(tab, other.theme, COLOUR_RULES, other.width):
            yield f"{look.width} wide", *found


def find_violations(tab: Page) -> Iterator[tuple[str, ...]]:
    """What axe finds on a page to which it was added: by all rules in one theme, by those about colours in the other."""
    yield from _run_axe(tab, "light")
    yield from _run_axe(tab, "dark", COLOUR_RULES)


def _run_axe(
    tab: Page, theme: str, rules: list[str] | None = None, other_width: int | None = None
) -> Iterator[tuple[str, ...]]:
    for one in tab.evaluate(RUN_AXE, [theme, rules, other_width]):
        for node in one["nodes"][:3]:
            yield theme, one["id"], node["html"][:200], node["failureSummary"][:300]


def _set_width(tab: Page, width: int) -> None:
    size = VIEWPORTS.get(width, {**DESKTOP, "width": width})
    if tab.viewport_size != size:
        tab.set_viewport_size(size)
