import gzip
import json
import os

import psycopg
import pytest

from regulars.cli import import_file


def test_a_file_is_imported_and_its_rejected_rows_are_written_beside_it(regulars, tmp_path):
    regulars("organization", "create", "Shop")
    file = tmp_path / "stores.csv"
    file.write_text("external_id,name\nS1,Paris\nprof_x,Bad\n")
    ran = regulars("import", "stores", str(file), "-o", "Shop", "--json")
    assert ran.code == 1
    assert (ran.data["created"], ran.data["rejected"]) == (1, 1)
    (note,) = (json.loads(line) for line in (tmp_path / "stores.csv.rejected.ndjson").read_text().splitlines())
    assert (note["row"], note["code"], note["input"]["name"]) == (3, "RESERVED_EXTERNAL_ID", "Bad")
    file.write_text("external_id,name\nS1,Paris\n")
    assert regulars("import", "stores", str(file), "-o", "Shop", "--json").data["unchanged"] == 1


def test_progress_needs_no_position_in_a_pipe():
    readable, writable = os.pipe()
    os.close(writable)
    with os.fdopen(readable, "rb") as stream, import_file._progress("stores", stream) as advance:
        advance(3)


def test_a_file_organization_or_header_that_cannot_be_used_ends_in_one_sentence(regulars, tmp_path):
    file = tmp_path / "stores.csv"
    file.write_text("external_id,nom\nS1,Paris\n")
    regulars("organization", "create", "Shop")
    assert "'nom'" in regulars("import", "stores", str(file), "-o", "Shop").complains(code=2)
    file.write_text("external_id\nS1\n")
    assert "no organization" in regulars("import", "stores", str(file), "-o", "Nobody").complains(code=1)
    assert "cannot be read" in regulars("import", "stores", "absent.csv", "-o", "Shop").complains(code=2)


def test_a_file_of_a_shop_is_mapped_and_the_mapping_saved(regulars, tmp_path):
    regulars("organization", "create", "Shop")
    file, mapping = tmp_path / "magasins.csv", tmp_path / "magasins.toml"
    file.write_bytes("Numéro;Nom;Couleur\nS1;Café;rouge\n".encode("cp1252"))
    pairs = ("--map", "Numéro=external_id", "--map", "Nom=name", "--map", "Couleur=")
    ran = regulars("import", "stores", str(file), "-o", "Shop", "--json", *pairs, "--save-mapping", str(mapping))
    assert ran.code == 0, ran.err
    assert (ran.data["created"], ran.data["ignored"]) == (1, {"Couleur": 1})
    assert "Windows-1252" in ran.err
    again = regulars("import", "stores", str(file), "-o", "Shop", "--mapping", str(mapping))
    assert again.code == 0, again.err
    assert "Couleur ignored" in again.out


def test_unknown_fields_are_counted_and_rejections_explained_in_words(regulars, tmp_path):
    regulars("organization", "create", "Shop")
    file = tmp_path / "stores.ndjson"
    file.write_text('{"external_id":"S1","nmae":"x"}\n{"external_id":"S2","nmae":"x"}\n{"name":"no id"}\n')
    ran = regulars("import", "stores", str(file), "-o", "Shop")
    assert ran.code == 1
    assert "nmae ignored" in ran.out
    assert "Row 3: external_id:" in ran.err
    assert "1 row was rejected" in ran.err


@pytest.mark.parametrize(
    ("organization_s", "setting", "stored"), [(None, "FR", "+33612345678"), ("GB", "FR", "+44612345678")]
)
def test_the_default_country_is_that_of_the_api(regulars, database_url, tmp_path, *, organization_s, setting, stored):
    regulars("organization", "create", "Shop")
    if organization_s:
        regulars("organization", "set", "Shop", "--default-country", organization_s)
    file = tmp_path / "people.csv"
    file.write_text("external_id,phone_number\nC1,06 12 34 56 78\n")
    assert regulars("import", "profiles", str(file), "-o", "Shop", REGULARS_DEFAULT_COUNTRY=setting).code == 0
    with psycopg.connect(database_url) as connection:
        assert connection.execute("SELECT phone_number FROM profiles").fetchone() == (stored,)


def test_a_file_of_rejected_rows_that_cannot_be_written_is_one_sentence(regulars, tmp_path):
    regulars("organization", "create", "Shop")
    file = tmp_path / "stores.csv"
    file.write_text("external_id\nprof_x\n")
    ran = regulars("import", "stores", str(file), "-o", "Shop", "--rejected", str(tmp_path / "no" / "such" / "x"))
    assert ran.code == 2
    assert "Traceback" not in ran.err
    assert "name another file with --rejected" in " ".join(ran.err.split())


def test_a_packed_file_that_was_cut_off_is_one_sentence(regulars, tmp_path):
    regulars("organization", "create", "Shop")
    file = tmp_path / "stores.csv.gz"
    file.write_bytes(gzip.compress(b"external_id\n" + b"".join(b"S%d\n" % n for n in range(9000)))[:-200])
    ran = regulars("import", "stores", str(file), "-o", "Shop")
    assert ran.code == 2
    assert "damaged or truncated" in " ".join(ran.err.split())


def test_the_demo_fills_an_organization_once(regulars):
    ran = regulars("demo", "--sales", "300", "-o", "Try")
    assert ran.code == 0, ran.err
    assert "regulars key create" in ran.out
    assert "regulars user create you@example.com --role owner --organization Try" in ran.out
    assert "--force" in regulars("demo", "--sales", "300", "-o", "Try").complains(code=1)
