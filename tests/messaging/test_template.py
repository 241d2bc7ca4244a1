import pytest
from hypothesis import given
from hypothesis import strategies as st

from regulars.messaging.template import MissingValue, TemplateError, check_fields, parse_template, render

FIELDS = {"profile.first_name": "Zoé", "profile.attributes.size": "42", "profile.attributes.shoe | size": "9"}


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("Hello", "Hello"),
        ("Hello {{ profile.first_name }}", "Hello Zoé"),
        ("Hello {{profile.first_name}}, size {{ profile.attributes.size }}.", "Hello Zoé, size 42."),
        ('{{ profile.last_name | default("you") }}!', "you!"),
        ("{{ profile.last_name | default(“chère cliente”) }}", "chère cliente"),
        ('{{ profile.attributes["shoe | size"] | default("?") }}', "9"),
        ("{{ profile.first_name }}}", "Zoé}"),
    ],
)
def test_places_are_filled(text, sent):
    assert render(parse_template(text), FIELDS) == sent


def test_a_missing_value_without_a_default_names_its_field():
    assert render(parse_template("Hi {{ profile.last_name }}"), FIELDS) == MissingValue("profile.last_name")
    assert render(parse_template("Hi {{ profile.last_name }}"), {"profile.last_name": " \u200b{} "}) == MissingValue(
        "profile.last_name"
    )


@pytest.mark.parametrize(
    ("text", "position", "part"),
    [
        ("", 0, "empty"),
        ("Hi {{ profile.first_name", 3, "does not end"),
        ("Hi }} there", 3, "without a {{"),
        ("Hi {{ }}", 3, "no field"),
        ("Hi {{ profile.first_name | upper }}", 3, "default"),
        ("Hi {{ profile.first_name | default(you) }}", 3, "quotes"),
        ('Hi {{ profile.first_name | default("") }}', 3, "empty"),
        ("{{{ profile.first_name }}", 0, "brace"),
        ("x" * 2001, 2000, "more than"),
    ],
)
def test_what_cannot_be_read_says_why_and_where(text, position, part):
    with pytest.raises(TemplateError, match=part.replace("{", r"\{")) as refused:
        parse_template(text)
    assert refused.value.position == position


@pytest.mark.parametrize("field", ["profile.phone", "profile", "x", "profile.attributes.colour", "profile.__class__"])
def test_an_unknown_field_is_refused_when_the_text_is_saved(field):
    with pytest.raises(TemplateError):
        check_fields(parse_template(f"Hi {{{{ {field} }}}}"), attribute_keys={"size"})
    check_fields(parse_template("{{ profile.attributes.size }} {{ brand }}"), attribute_keys={"size"})


@given(
    st.text(max_size=120) | st.text(alphabet='{}|"default() .profile_first_name', max_size=60),
    st.dictionaries(st.sampled_from(["profile.first_name", "brand"]), st.text(max_size=150)),
)
def test_no_text_ever_leaves_with_a_place_in_it(text, values):
    try:
        template = parse_template(text)
    except TemplateError:
        return
    sent = render(template, values)
    if isinstance(sent, str):
        assert "{{" not in sent
        assert "}}" not in sent
