import json


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


def test_a_file_organization_or_header_that_cannot_be_used_ends_in_one_sentence(regulars, tmp_path):
    file = tmp_path / "stores.csv"
    file.write_text("external_id,nom\nS1,Paris\n")
    regulars("organization", "create", "Shop")
    assert "'nom'" in regulars("import", "stores", str(file), "-o", "Shop").complains(code=2)
    file.write_text("external_id\nS1\n")
    assert "no organization" in regulars("import", "stores", str(file), "-o", "Nobody").complains(code=1)
    assert "cannot be read" in regulars("import", "stores", "absent.csv", "-o", "Shop").complains(code=2)


def test_the_demo_fills_an_organization_once(regulars):
    ran = regulars("demo", "--sales", "300", "-o", "Try")
    assert ran.code == 0, ran.err
    assert "regulars key create" in ran.out
    assert "--force" in regulars("demo", "--sales", "300", "-o", "Try").complains(code=1)
