from types import SimpleNamespace

import pytest

from regulars.web import flash
from regulars.web.form import FormRefused, FormState
from regulars.web.format import Format
from regulars.web.navigation import entry_of
from regulars.web.render import _TEMPLATES
from regulars.web.static import ASSETS_PATH, asset_response, asset_url
from regulars.web.visit import safe_next


@pytest.mark.parametrize("wanted", ["/o/shop/customers?q=a", "/account"])
def test_a_path_of_our_own_may_be_next(wanted):
    assert safe_next(wanted, otherwise="/") == wanted


@pytest.mark.parametrize(
    "wanted",
    [
        "//evil.example",
        "/\\evil.example",
        "https://evil.example",
        "javascript:alert(1)",
        "evil",
        "",
        None,
        "/\t/evil",
        "/a\n",
        "/ok\\..\\x",
        "/ /evil",
    ],
)
def test_no_other_site_may_be_next(wanted):
    assert safe_next(wanted, otherwise="/home") == "/home"


def test_a_flash_is_read_back_only_with_the_secret_it_was_made_with():
    packed = flash.pack("Saved « Zoé ».", "secret")
    assert flash.unpack(packed, "secret") == "Saved « Zoé »."
    assert flash.unpack(packed, "other") is None
    assert flash.unpack("not base64 !", "secret") is None
    assert flash.unpack("é", "secret") is None


def test_a_form_keeps_the_first_error_of_each_field_in_order():
    form = FormState({"name": " ", "count": "12x", "kind": "c"})
    form.text("name")
    form.integer("count", minimum=1, maximum=5)
    form.choice("kind", {"a", "b"})
    form.refuse("name", "Another reason.")
    assert list(form.errors) == ["name", "count", "kind"]
    assert form.error("name") == "Fill this in."
    assert form.value("count") == "12x"


def test_a_refused_form_leaves_its_handler_with_its_error():
    form = FormState({"name": "Zoé"})
    form.check()
    with pytest.raises(FormRefused) as refused, form.refusing("name", LookupError):
        raise LookupError("Another customer has this name.")
    assert refused.value.form is form
    assert form.errors == {"name": "Another customer has this name."}
    with pytest.raises(FormRefused):
        form.check()
    with pytest.raises(OSError, match="disk"), form.refusing("name", LookupError):
        raise OSError("disk")


@pytest.mark.parametrize("text", ["a\nb", "a\x1bb", "x" * 1025])
def test_a_line_of_text_is_visible_and_bounded(text):
    form = FormState({"name": text})
    form.text("name")
    assert form.is_refused


def test_a_file_has_its_hash_in_its_address_and_is_cached_for_ever():
    url = asset_url("app.css")
    assert url.startswith(f"{ASSETS_PATH}app-")
    response = asset_response(url)
    assert response is not None
    assert "immutable" in response.headers["cache-control"]
    assert b'url("/assets/chevron-' in response.body
    assert asset_response(f"{ASSETS_PATH}app-000000000000.css") is None


@pytest.mark.parametrize(
    ("path", "entry"),
    [
        ("/", "/"),
        ("/customers", "/customers"),
        ("/customers/C-1", "/customers"),
        ("/customersx", ""),
        ("/settings/team/new", "/settings/team"),
    ],
)
def test_a_page_belongs_to_the_longest_entry_of_the_navigation(path, entry):
    assert entry_of(path) == entry


@pytest.mark.parametrize(
    ("left_s", "remainder"),
    [
        (None, ""),
        (5, ", less than a minute left in all"),
        (70, ", about 1 minute left in all"),
        (900, ", about 15 minutes left in all"),
    ],
)
def test_a_progress_says_about_how_long_it_still_takes(left_s, remainder):
    progress = SimpleNamespace(phase="sales", done=1000, total=4000, left_s=left_s)
    drawn = _TEMPLATES.get_template("web/parts.html").module.read_progress(progress, Format("en-GB", "UTC"))
    assert f">Sales: 1,000 of 4,000{remainder}<" in drawn
