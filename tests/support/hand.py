"""Uses a page with the mouse and counts the clicks: a click is a press of the mouse or a choice by key; a choice from a
select is two. Letters typed into a search are counted beside the clicks."""

import re

from playwright.sync_api import Locator, Page, expect


class Hand:
    def __init__(self, tab: Page) -> None:
        self.tab = tab
        self.clicks = 0
        # How many letters were typed into each search.
        self.letters: list[int] = []

    def click(self, target: Locator) -> None:
        self.clicks += 1
        target.click()

    def choose(self, field: Locator, label: str) -> None:
        """From a select."""
        self.clicks += 2
        field.select_option(label=label)

    def write(self, field: Locator, text: str) -> None:
        """Into a field that has the focus, or that is clicked first."""
        self._go_to(field)
        self.tab.keyboard.press("Control+A")
        self.tab.keyboard.type(text)

    def write_time(self, field: Locator, moment: str) -> None:
        """A date and a time. In which order their parts are typed is the browser's business."""
        self._go_to(field)
        field.fill(moment)

    def search(self, field: Locator, letters: str, suggestion: str, *, with_keys: bool = False) -> None:
        """Type into a field that has the focus, and choose what it suggests."""
        expect(field).to_be_focused()
        self.tab.keyboard.type(letters)
        self.letters.append(len(letters))
        option = self.tab.locator("#suggestions > [role=option]").first
        expect(option).to_have_accessible_name(re.compile(re.escape(suggestion)))
        if not with_keys:
            self.click(option)
            return
        self.clicks += 1
        self.tab.keyboard.press("ArrowDown")
        self.tab.keyboard.press("Enter")

    def _go_to(self, field: Locator) -> None:
        expect(field).to_be_visible()
        # A script may put another field in its place, or the caret into it.
        self.tab.wait_for_load_state()
        if not field.evaluate("(field) => field === document.activeElement"):
            self.click(field)
