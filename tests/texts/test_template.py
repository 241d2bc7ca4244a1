import pytest
from hypothesis import given
from hypothesis import strategies as st

from regulars.texts.template import (
    VARIANTS_MAX,
    MissingValue,
    TemplateError,
    TextVariants,
    check_fields,
    fields_of,
    fill_defaults,
    fill_shortest,
    find_text_faults,
    parse_template,
    render,
    render_text,
)
from regulars.texts.template_labels import describe_template, describe_without_values
from regulars.texts.text_form import apply_button, fill_text_form, list_language_rows, read_text_form

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
        ('Merci{{ profile.first_name | before(" ") }} !', "Merci Zoé !"),
        ('Merci{{ profile.last_name | before(" ") }} !', "Merci !"),
        ("Merci{{ profile.last_name|before(', ma chère ') }}, à bientôt", "Merci, à bientôt"),
        ("Merci{{ profile.first_name | before(“, ma chère {”) }}", "Merci, ma chère Zoé"),
        ('{{ profile.last_name | before("") }}Bonjour', "Bonjour"),
        ('Size{{ profile.attributes["shoe | size"] | before(" ") }}', "Size 9"),
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
        ('Hi {{ profile.first_name | before(" ") | default("you") }}', 3, "not both"),
        ('Hi {{ profile.first_name | default("you") | before(" ") }}', 3, "not both"),
        ("Hi {{ profile.first_name | before(x) }}", 3, "quotes"),
        (' {{ profile.first_name | before(" ") }} ', 0, "empty for customers without"),
        ("Hi {{ profile.first_name | default(you) }}", 3, "quotes"),
        ('Hi {{ profile.first_name | default("") }}', 3, "empty"),
        ("{{{ profile.first_name }}", 0, "brace"),
        ("x" * 2001, 2000, "At most 2000"),
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
    st.text(max_size=120)
    | st.text(alphabet='{}|"default() .profile_first_name', max_size=60)
    | st.builds('x{{{{ brand | before("{}") }}}}'.format, st.text(max_size=60)),
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


def test_users_see_a_text_with_and_without_its_values():
    text = 'Merci{{ profile.first_name | before(" chère ") }} de {{ brand }}, {{ store.city | default("ici") }}'
    assert describe_template(text) == "Merci chère [first name] de [brand's name], [store's city]"
    assert describe_without_values(text) == "Merci de [brand's name], ici"
    assert describe_template(text, with_fallbacks=True) == (
        "Merci[“ chère ” and first name, or nothing] de [brand's name], [store's city, or “ici”]"
    )
    assert describe_without_values("Merci {{ brand }}") is None
    # The longest and the shortest text are counted.
    assert fill_defaults(parse_template(text)) == "Merci chère first name de brand's name, ici"
    assert fill_shortest(parse_template(text)) == "Merci de brand's name, ici"
    assert fill_shortest(parse_template("Merci {{ profile.first_name | default('x') }}")) is None


def test_a_variable_inserted_without_a_script_takes_the_space_before_it():
    variable = '{{ profile.first_name | before(" ") }}'
    assert apply_button({"text": "Merci ", "field": variable, "insert": "text"}) == {"text": f"Merci{variable}"}
    assert apply_button({"text": "From", "field": "{{ brand }}", "insert": "text"}) == {"text": "From {{ brand }}"}


VARIANTS = TextVariants("language", "Hello {{ profile.first_name }}", {"fr": "Bonjour", "DE": "Hallo {{ brand }}"})


@pytest.mark.parametrize(
    ("language", "sent"),
    [(None, "Hello Zoé"), ("it", "Hello Zoé"), ("fr", "Bonjour"), (" FR ", "Bonjour"), ("de", MissingValue("brand"))],
)
def test_the_value_of_an_attribute_chooses_the_language(language, sent):
    assert render_text(VARIANTS, {**FIELDS, "profile.attributes.language": language}) == sent
    assert render_text("Hello", {"profile.attributes.language": language}) == "Hello"


def test_fields_and_faults_are_those_of_all_languages():
    assert fields_of(VARIANTS) == {"brand", "profile.first_name", "profile.attributes.language"}
    assert list(find_text_faults(VARIANTS, attribute_keys={"language"})) == []
    wrong = TextVariants("tongue", "{{ x }}", {"fr": "{{", "FR": "Bonjour"})
    found = list(find_text_faults(wrong, attribute_keys={"language"}))
    assert len(found) == 4
    for part in (
        "No customer has an attribute called tongue",
        "Two texts are for FR",
        "There is no field x",
        "for fr: A",
    ):
        assert any(part in fault for fault in found), part


def test_a_form_of_languages_reads_what_it_was_filled_with():
    refused = {}
    for content in ("Hello", VARIANTS):
        assert read_text_form(fill_text_form(content), refused.__setitem__) == content
    assert refused == {}
    assert list_language_rows(fill_text_form("Hello")) == [0]
    assert list_language_rows(fill_text_form(VARIANTS)) == [0, 1, 2]
    assert list_language_rows({f"value_{row}": "x" for row in range(VARIANTS_MAX)}) == list(range(VARIANTS_MAX))
    # An attribute without another text, and a row that was emptied, are no language.
    emptied = {**fill_text_form(VARIANTS), "value_0": "", "text_0": " ", "value_1": "", "text_1": ""}
    assert read_text_form(emptied, refused.__setitem__) == VARIANTS.default
    read_text_form({"text": "", "value_0": "fr", "text_1": "x"}, refused.__setitem__)
    assert refused.keys() == {"text", "text_0", "value_1", "by"}
