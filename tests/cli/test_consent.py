"""`regulars consent verify`: it holds what is whole and names what is not."""

import psycopg
import pytest


@pytest.fixture
def filled(regulars, tmp_path):
    rows = [
        f'{{"phone_number":"+3361234567{n}","consent_source":"WEBSITE","consented_at":"2026-01-01T00:00:00Z"}}'
        for n in range(5)
    ]
    rows.append('{"phone_number":"+33612345670","unsubscribed_at":"2026-02-01T00:00:00Z"}')
    (tmp_path / "consents.ndjson").write_text("\n".join(rows))
    for name in ("One", "Two"):
        regulars("organization", "create", name)
        assert regulars("import", "consents", str(tmp_path / "consents.ndjson"), "-o", name).code == 0
    return regulars


def test_it_says_what_it_saw(filled):
    seen = filled("consent", "verify", "--json")
    assert seen.code == 0, seen.err
    assert [each["organization"]["name"] for each in seen.data] == ["One", "Two"]
    for each in seen.data:
        assert (each["numbers"], each["entries"], each["payloads_erased"], each["faults"]) == (5, 6, 0, [])
    shown = filled("consent", "verify", "--organization", "Two").out
    assert "Two" in shown
    assert "One" not in shown


def test_an_entry_that_was_changed_is_named(filled, database_url):
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            "UPDATE consent_ledger SET outcome = 'updated' WHERE organization_id ="
            " (SELECT id FROM organizations WHERE name = 'Two') AND kind = 'OPT_OUT'"
        )
    found = filled("consent", "verify", "--json")
    assert found.code == 1
    assert "is damaged for 1 number." in found.err
    (one, two) = found.data
    assert one["faults"] == []
    (fault,) = two["faults"]
    assert fault["subscription"].startswith("sub_")
    assert fault["fault"] == "entry 2: its hash is not the hash of what it says"


def test_an_organization_that_is_not_there_is_one_sentence(filled):
    assert "no organization named 'Three'" in filled("consent", "verify", "-o", "Three").complains(code=1)
