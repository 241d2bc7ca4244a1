import re
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import parse_qsl, urlsplit
from uuid import uuid4

import pytest
from starlette.requests import Request

from regulars.kit.keyset import PageRequest, PageRows, page_of
from regulars.lists.sources import read_all_rows
from regulars.web.access import Role
from regulars.web.errors import BadFilter
from regulars.web.format import Format
from regulars.web.listing import COUNT_MAX, Count, Filter, make_page, read_view
from regulars.web.visit import Visit, VisitedOrganization

FILTERS = (
    Filter("q", "Name or number", kind="search"),
    Filter("status", "Status", choices=(("on", "Subscribed"), ("off", "Withdrawn"))),
    Filter("store", "Store"),
    Filter("since", "Since", kind="date"),
)
ORGANIZATION = VisitedOrganization(uuid4(), "shop", "Shop", "UTC", "en-GB", None, b"s" * 32, Role.OWNER)


def look(address: str = ""):
    query = dict(parse_qsl(urlsplit(address).query))
    visit = Visit(
        request=Request({"type": "http", "headers": [], "path": "/o/shop/things", "query_string": b""}),
        request_id="",
        database=None,
        query=query,
        csrf="",
        is_https=False,
        client_address="",
        current_organization=ORGANIZATION,
        now=datetime.now(UTC),
    )
    return read_view(visit, "things", "/things", filters=FILTERS, sorts=("newest", "name"))


@dataclass(frozen=True)
class Shelf:
    """A list of numbers as a room would give it: in the view's direction, from its position."""

    numbers: list[int]

    def fetch(self, view):
        return page_of(self.numbers, view.request, lambda number: (str(number),))

    def page(self, address):
        view = look(address)
        return make_page(view, self.fetch(view), lambda number: (str(number),))


def test_the_address_says_what_is_filtered_and_parameters_of_others_are_left_out():
    view = look("?status=on&store=PARIS-1&sort=name&colour=red&q=")
    assert view.values == {"status": "on", "store": "PARIS-1"}
    assert view.sort == "name"
    assert look("?sort=worst").sort == "newest"


@pytest.mark.parametrize(
    ("address", "fault"),
    [
        ("?status=maybe", "“Status” has no choice “maybe”."),
        ("?since=garbage", "“Since” needs a day such as 2026-11-16; “garbage” is not a day."),
        ("?since=0001-01-01", "“Since” needs a day such as 2026-11-16; “0001-01-01” is not a day."),
        ("?store=" + "x" * 256, "“Store” may have at most 255 characters; this has 256."),
    ],
)
def test_a_filter_that_cannot_be_read_is_refused(address, fault):
    with pytest.raises(BadFilter, match=re.escape(fault)) as refused:
        look(address)
    assert refused.value.path == "/o/shop/things"


def test_a_day_begins_at_midnight_of_the_zone():
    view = look("?since=2026-11-16")
    assert view.start_of("since", UTC) == datetime(2026, 11, 16, tzinfo=UTC)
    assert view.start_of("since", UTC, days_later=1) == datetime(2026, 11, 17, tzinfo=UTC)
    assert look().start_of("since", UTC) is None


def test_a_chip_says_the_filter_in_words_and_links_to_the_list_without_it():
    view = look("?status=on&store=PARIS-1&sort=name")
    assert [(chip.label, chip.value, chip.remove_url) for chip in view.chips] == [
        ("Status", "Subscribed", "/o/shop/things?store=PARIS-1&sort=name"),
        ("Store", "PARIS-1", "/o/shop/things?status=on&sort=name"),
    ]


def test_the_file_has_the_same_filters():
    assert look("?status=on&after=xyz").csv_url() == "/o/shop/things.csv?status=on"


@pytest.mark.parametrize("count", [0, 1, 49, 50, 51, 100, 101, 250])
def test_a_walk_forth_and_back_sees_every_row_once(count):
    shelf = Shelf(list(range(count)))
    seen, address, last = [], "", ""
    while address is not None:
        page = shelf.page(address)
        seen += page.rows
        last, address = address, page.next_url
    assert seen == list(range(count))
    back, address = [], last
    while address is not None:
        page = shelf.page(address)
        back = [*page.rows, *back]
        address = page.previous_url
    assert back == list(range(count))


def test_a_cursor_of_other_filters_begins_at_the_beginning():
    shelf = Shelf(list(range(120)))
    onward = shelf.page("?status=on").next_url
    assert look(onward).request.position == ("49",)
    assert look(onward.replace("status=on", "status=off")).request.position is None
    assert look("?after=garbage").request.position is None


@pytest.mark.anyio
@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 7])
async def test_an_export_walks_the_whole_list_also_past_the_end_of_a_bounded_scan(count):
    numbers = list(range(count))

    async def fetch(_tx, page):
        """Of each five numbers only the even ones fit."""
        scanned = page_of(numbers, PageRequest(5, page.position), lambda number: (str(number),))
        found = PageRows([number for number in scanned if number % 2 == 0][: page.limit])
        if len(found) < page.limit and len(scanned) == 5:
            found.end_position = (str(scanned[-1]),)
        return found

    source = look().by_key(fetch, lambda number: (str(number),))
    seen = [number async for number in read_all_rows(source, nullcontext, limit=2)]
    assert seen == numbers[::2]


@pytest.mark.parametrize(
    ("address", "position"),
    [
        ("?status=on&after=z_x8IGufK4uCUwOK_iDoXlsiNDkiXQ", ("49",)),
        ("?sort=name&before=EjQ2sHzkxjn0xqeKl3hFs1siYW5uYSIsIjQ5Il0", ("anna", "49")),
    ],
)
def test_a_cursor_that_an_earlier_release_gave_out_stays_valid(address, position):
    request = look(address).request
    assert (request.position, request.is_backward) == (position, "before" in address)


def test_a_count_stops_at_its_cap():
    formats = Format("en-GB", "UTC")
    assert Count(9_999).formatted(formats) == "9,999"
    assert Count(COUNT_MAX).formatted(formats) == "10,000"
    assert Count(COUNT_MAX + 1).formatted(formats) == "10,000+"
