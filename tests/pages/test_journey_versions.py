"""Versions of journeys on their pages: which is the first, and how two differ."""

import html
import re

import psycopg
import pytest
from psycopg import sql
from tests.pages.test_journey_builder import Builder
from tests.pages.test_journeys import id_of

from regulars.kit.ids import JOURNEY


@pytest.fixture
def blank(marketer) -> Builder:
    return Builder(marketer, id_of(marketer.post("/journeys", start="blank")))


def test_the_first_version_is_the_one_that_a_user_saves_or_activates(blank):
    journey, marketer = f"/journeys/{blank.journey}", blank.visitor
    assert "Not saved yet" in marketer.get("/journeys").text
    for page in (journey, f"{journey}/edit", f"{journey}/versions", f"{journey}/backtest", f"{journey}/activate"):
        text = marketer.get(page).text
        assert ("ersion 0" in text, "ersion 2" in text) == (False, False), page
    blank.add("1", "wait", days="2")
    assert "Draft of version 1" in blank.page()
    assert "version=1" in blank.save().headers["location"]
    # A template needs no save before it goes live. What was changed in the builder by then stays a draft.
    template = Builder(marketer, id_of(marketer.post("/journeys", start="welcome")))
    template.add("1", "wait", days="3")
    assert "Save as version 1" in re.sub(r"\s+", " ", template.page())
    assert marketer.post(f"/journeys/{template.journey}/activate").is_redirect
    assert "Version 1, live since" in marketer.get(f"/journeys/{template.journey}").text
    assert "Draft of version 2" in template.page()
    assert "1 version saved" in marketer.get(f"/journeys/{template.journey}/versions").text
    assert "version=2" in template.save().headers["location"]
    # A copy begins anew.
    copy = id_of(marketer.post(f"/journeys/{template.journey}/duplicate"))
    assert "Not saved yet" in marketer.get(f"/journeys/{copy}").text
    saved = Builder(marketer, copy).save()
    assert "version=1" in saved.headers["location"]


def test_a_button_activates_the_version_that_its_page_showed(blank):
    blank.add("1", "wait", days="1")
    blank.save()
    activate = f"/journeys/{blank.journey}/activate"

    def shown() -> str:
        return re.search(r'name="was" value="(\w+)"', blank.visitor.get(activate).text)[1]

    opened = shown()
    blank.add("2", "exit")
    blank.save()
    refused = blank.visitor.post(activate, was=opened)
    assert (refused.status_code, "Nothing was done." in refused.text) == (409, True)
    assert "Version 2, live since" not in blank.visitor.get(f"/journeys/{blank.journey}").text
    assert blank.visitor.post(activate, was=shown()).is_redirect
    assert "Version 2, live since" in blank.visitor.get(f"/journeys/{blank.journey}").text


def test_versions_show_their_difference(blank):
    blank.add("1", "wait", days="1")
    blank.save()
    blank.add("2", "exit")
    blank.save()
    page = html.unescape(blank.visitor.get(f"/journeys/{blank.journey}/versions").text)
    assert "From version 1 to version 2" in page
    assert "<ins>Exit</ins>" in page
    assert blank.visitor.get(f"/journeys/{blank.journey}/versions", version="99", since="x").status_code == 200


def test_a_stored_version_with_a_part_that_cannot_be_read_is_shown_and_repaired(blank, api_database_url):
    blank.add("1", "wait", days="1")
    blank.add("2", "exit")
    blank.save()
    journey = f"/journeys/{blank.journey}"
    with psycopg.connect(api_database_url, autocommit=True) as connection:
        for table in ("journey_versions", "journey_drafts"):
            connection.execute(
                sql.SQL(
                    "UPDATE {} SET definition = jsonb_set(definition::jsonb, '{{steps,0,days}}', '\"some\"')::json"
                    " WHERE journey_id = %s"
                ).format(sql.Identifier(table)),
                (JOURNEY.decode(blank.journey),),
            )
    fault = "expected a whole number, got a text"
    assert "New journey" in blank.visitor.get("/journeys").text
    for page in (journey, f"{journey}/edit", f"{journey}/activate"):
        assert fault in html.unescape(blank.visitor.get(page).text), page
    for page in (f"{journey}/versions", f"{journey}/runs", f"{journey}/backtest"):
        assert blank.visitor.get(page).status_code == 200, page
    refused = blank.visitor.post(f"{journey}/activate")
    assert (refused.status_code, "It cannot run: " in refused.text) == (409, True)
    assert blank.visitor.post(f"{journey}/duplicate").status_code == 409
    assert "version=2" in blank.save().headers["location"]
    assert fault not in html.unescape(blank.visitor.get(journey).text)
