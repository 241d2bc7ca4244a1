"""Browser tabs that tests use one after the other: a process for each tab and a cold cache cost more than most tests."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakKeyDictionary

from playwright.sync_api import Browser, Page
from tests.support.browser import DESKTOP, add_session, new_context
from tests.support.visitor import Visitor

# The free tabs of a browser, by the options that a context cannot change later.
_free: WeakKeyDictionary[Browser, dict[tuple[object, ...], list[Page]]] = WeakKeyDictionary()


@contextmanager
def tab_of(
    browser: Browser,
    visitor: Visitor,
    *,
    theme: str | None = "light",
    viewport: dict[str, int] | None = None,
    locale: str | None = None,
    java_script_enabled: bool = True,
) -> Iterator[Page]:
    """A tab in which this user is signed in, without anything that an earlier test has left."""
    free = _free.setdefault(browser, {}).setdefault((locale, java_script_enabled), [])
    if free:
        tab = free.pop()
    else:
        tab = new_context(browser, locale=locale, java_script_enabled=java_script_enabled).new_page()
    try:
        tab.set_viewport_size(viewport or DESKTOP)
        add_session(tab.context, visitor, theme=theme)
        yield tab
        _clean(tab)
    except BaseException:
        tab.context.close()
        raise
    free.append(tab)


def _clean(tab: Page) -> None:
    context = tab.context
    context.set_offline(False)
    context.unroute_all()
    tab.unroute_all()
    if re.match("https?:", tab.url):
        tab.evaluate("() => { localStorage.clear(); sessionStorage.clear() }")
    tab.goto("about:blank")
    tab.emulate_media(media="null", color_scheme="null", reduced_motion="null")
    context.clear_cookies()
