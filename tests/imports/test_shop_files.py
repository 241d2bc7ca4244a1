"""What shops really have: separators, encodings, packed files, spreadsheets, their own column names and spellings."""

import gzip
import io
import zipfile
from pathlib import Path

import msgspec
import pytest

from regulars.imports.cells import read_decimal, read_local_time
from regulars.imports.columns import CellKind, columns_of
from regulars.imports.file_reader import read_file
from regulars.imports.mapping import FileMapping, load_mapping, write_mapping
from regulars.imports.model import FileError, ImportKind
from regulars.kit.errors import ApiError

DOCUMENT = (Path(__file__).parents[2] / "docs" / "imports.md").read_text()


def opened(content, kind=ImportKind.STORES, **said):
    stream = io.BufferedReader(io.BytesIO(content))
    chosen = load_mapping(None, said.pop("pairs", ()), **{"amounts": None, "timezone": None, "sheet": None, **said})
    return read_file(stream, kind, None, chosen)


def objects(content, kind=ImportKind.STORES, **said):
    return [msgspec.json.decode(row.body) for row in opened(content, kind, **said).rows]


PARIS = [{"external_id": "S1", "name": "Café Élysée"}]
TEXT = "external_id;name\nS1;Café Élysée\n"


@pytest.mark.parametrize(
    "content",
    [
        TEXT.encode(),
        TEXT.encode("utf-8-sig"),
        TEXT.encode("utf-16"),
        TEXT.encode("utf-16-le"),
        TEXT.encode("utf-16-be"),
        TEXT.encode("cp1252"),
        TEXT.replace(";", "\t").encode(),
        TEXT.replace(";", ",").replace("\n", "\r\n").encode(),
        b"sep=;\r\n" + TEXT.encode(),
        b"sep=|\n" + TEXT.replace(";", "|").encode(),
        gzip.compress(TEXT.encode("cp1252"), mtime=0),
        b"external_id;name;;;\nS1;Caf\xc3\xa9 \xc3\x89lys\xc3\xa9e;;;;;\n;;;\n",
    ],
)
def test_separators_encodings_packing_and_trailing_columns(content):
    assert objects(content) == PARIS


def test_windows_1252_is_said_so_and_utf_8_is_not():
    assert "Windows-1252" in " ".join(opened(TEXT.encode("cp1252")).remarks)
    assert opened(TEXT.encode()).remarks == ()
    late = "external_id;name\n" + "S;x\n" * 50_000 + "S1;Café\n"
    assert "Windows-1252" in " ".join(opened(late.encode("cp1252")).remarks)


def test_a_packed_file_of_json_is_unpacked():
    assert objects(gzip.compress(b'{"external_id":"S1","name":"x"}\n')) == [{"external_id": "S1", "name": "x"}]


def spreadsheet(*sheets: tuple[str, list[list[str]]]) -> bytes:
    """A workbook as small as one can be; a cell is a text, or a number if it begins with `=`."""
    packed = io.BytesIO()
    kinds = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    with zipfile.ZipFile(packed, "w") as archive:
        kinds_of_parts = "http://schemas.openxmlformats.org/package/2006/content-types"
        archive.writestr("[Content_Types].xml", f'<Types xmlns="{kinds_of_parts}"/>')
        package = "http://schemas.openxmlformats.org/package/2006/relationships"
        document = f'<Relationship Id="r" Type="{kinds}/officeDocument" Target="xl/workbook.xml"/>'
        archive.writestr("_rels/.rels", f'<Relationships xmlns="{package}">{document}</Relationships>')
        names = "".join(
            f'<sheet name="{name}" sheetId="{number}" r:id="r{number}"/>' for number, (name, _) in enumerate(sheets, 1)
        )
        archive.writestr(
            "xl/workbook.xml", f'<workbook xmlns="{main}" xmlns:r="{kinds}"><sheets>{names}</sheets></workbook>'
        )
        links = "".join(
            f'<Relationship Id="r{number}" Type="{kinds}/worksheet" Target="worksheets/sheet{number}.xml"/>'
            for number in range(1, len(sheets) + 1)
        )
        package = "http://schemas.openxmlformats.org/package/2006/relationships"
        archive.writestr("xl/_rels/workbook.xml.rels", f'<Relationships xmlns="{package}">{links}</Relationships>')
        for number, (_, rows) in enumerate(sheets, 1):
            archive.writestr(
                f"xl/worksheets/sheet{number}.xml",
                f'<worksheet xmlns="{main}"><sheetData>{lines(rows)}</sheetData></worksheet>',
            )
    return packed.getvalue()


def lines(rows: list[list[str]]) -> str:
    return "".join(
        f'<row r="{line}">'
        + "".join(cell(f"{chr(65 + place)}{line}", text) for place, text in enumerate(row))
        + "</row>"
        for line, row in enumerate(rows, 1)
    )


def cell(place: str, text: str) -> str:
    if text.startswith("="):
        return f'<c r="{place}"><v>{text[1:]}</v></c>'
    return f'<c r="{place}" t="inlineStr"><is><t>{text}</t></is></c>'


def test_a_spreadsheet_is_read_as_a_person_sees_it():
    sales = [
        ["external_id", "total_amount_cents", "line_items.quantity"],
        ["T1", "=89.5", "=2"],
        ["T1", "", "=0.75"],
        ["=4711", "=12", "=1"],
    ]
    book = spreadsheet(("Tickets", sales), ("Shops", [["external_id"], ["S1"]]))
    assert objects(book, ImportKind.SALES, amounts="decimal") == [
        {"external_id": "T1", "total_amount_cents": 8950, "line_items": [{"quantity": 2}, {"quantity": 0.75}]},
        {"external_id": "4711", "total_amount_cents": 1200, "line_items": [{"quantity": 1}]},
    ]
    assert objects(book, sheet="Shops") == [{"external_id": "S1"}]
    with pytest.raises(FileError, match="no sheet 'Other'; it has Tickets, Shops"):
        opened(book, sheet="Other")


def test_the_results_of_formulas_are_rounded_as_a_spreadsheet_shows_them():
    rows = [["external_id", "total_amount_cents", "line_items.quantity"], ["T1", "=3.3000000000000003", "=0.1"]]
    rows.append(["T2", "=59.990000000000002", "=0.30000000000000004"])
    assert objects(spreadsheet(("Tickets", rows)), ImportKind.SALES, amounts="decimal") == [
        {"external_id": "T1", "total_amount_cents": 330, "line_items": [{"quantity": 0.1}]},
        {"external_id": "T2", "total_amount_cents": 5999, "line_items": [{"quantity": 0.3}]},
    ]
    in_cents = spreadsheet(("Tickets", [rows[0], ["T1", "=110.00000000000001", "=1"]]))
    assert objects(in_cents, ImportKind.SALES)[0]["total_amount_cents"] == 110


def test_a_packed_folder_that_is_no_spreadsheet_is_one_sentence():
    with pytest.raises(FileError, match="cannot be read"):
        opened(b"PK\x03\x04 nonsense")


def test_columns_of_the_file_are_mapped_or_left_out():
    content = b"Nr;Nom;Couleur\nS1;Lyon;red\n"
    found = opened(content, pairs=["Nr=external_id", "Nom=name", "Couleur="])
    assert [msgspec.json.decode(row.body) for row in found.rows] == [{"external_id": "S1", "name": "Lyon"}]
    assert found.ignored_columns == ("Couleur",)
    with pytest.raises(FileError, match="no column 'Numéro' to map; it has Nr, Nom, Couleur"):
        opened(content, pairs=["Numéro=external_id"])
    with pytest.raises(FileError, match="--map takes"):
        opened(content, pairs=["external_id"])


def test_a_header_that_does_not_fit_shows_the_columns_and_the_nearest_names():
    with pytest.raises(FileError) as raised:
        opened(b"external_id,nmae,adress.locality,zzz\n")
    sentence = str(raised.value)
    assert "'nmae', 'adress.locality', 'zzz'" in sentence
    assert '--map "nmae=name"' in sentence
    assert '--map "adress.locality=address.locality"' in sentence
    assert '"zzz=external_id"' not in sentence
    assert 'leave one out with --map "nmae="' in sentence
    assert "the columns are external_id, name, address.address_line1" in sentence


def test_a_saved_mapping_is_used_again_and_options_of_the_command_override_it(tmp_path):
    file = tmp_path / "till.toml"
    said = {"amounts": "decimal", "timezone": "Europe/Paris", "sheet": None}
    write_mapping(file, load_mapping(None, ['Nr "1"=external_id', "X="], **said))
    again = load_mapping(file, ["X=name"], amounts=None, timezone=None, sheet="Two")
    assert dict(again.columns) == {'Nr "1"': "external_id", "X": "name"}
    assert (again.file_format.amounts, again.file_format.timezone.key, again.sheet) == (
        "decimal",
        "Europe/Paris",
        "Two",
    )


@pytest.mark.parametrize(
    "text",
    ["amount = 1", "amounts = 1", "columns = 1", "[columns]\na = 1", "= =", 'amounts = "euros"', 'timezone = "Mars"'],
)
def test_a_mapping_that_cannot_be_used_is_one_sentence(tmp_path, text):
    file = tmp_path / "till.toml"
    file.write_text(text)
    with pytest.raises(FileError, match=r"\.$"):
        load_mapping(file, (), amounts=None, timezone=None, sheet=None)


@pytest.mark.parametrize(
    ("text", "cents"),
    [
        ("89,00", "8900"),
        ("89.00", "8900"),
        ("89", "8900"),
        ("89,5", "8950"),
        ("0,05", "5"),
        ("0", "0"),
        ("-12,30", "-1230"),
        ("\u221212,30", "-1230"),
        ("1 234,50", "123450"),
        ("1\u202f234,50", "123450"),
        ("1.234,50", "123450"),
        ("1,234.50", "123450"),
        ("1'234.50", "123450"),
        ("1.234.567", "123456700"),
        ("12 euros", "12 euros"),
        ("1.23.45", "1.23.45"),
        ("", ""),
    ],
)
def test_decimal_amounts_become_cents(text, cents):
    assert read_decimal(text, field="x") == cents


@pytest.mark.parametrize("text", ["1,234", "1.234", "1,2345", "12.345,678"])
def test_an_amount_that_may_mean_two_things_is_refused(text):
    refused = read_decimal(text, field="total_amount_cents")
    assert isinstance(refused, ApiError)
    assert refused.errors[0].field == "total_amount_cents"


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-03-01T10:00:00+02:00", "2026-03-01T10:00:00+02:00"),
        ("2026-03-01 10:00", "2026-03-01T10:00:00.000+01:00"),
        ("2026-07-01T10:00:30.250", "2026-07-01T10:00:30.250+02:00"),
        ("01/03/2026 9:05", "2026-03-01T09:05:00.000+01:00"),
        ("1.3.2026", "2026-03-01T00:00:00.000+01:00"),
        ("25-10-2026 02:30:00", "2026-10-25T02:30:00.000+02:00"),
        ("yesterday", "yesterday"),
    ],
)
def test_times_without_an_offset_are_of_the_zone_and_days_come_first(text, moment):
    zone = load_mapping(None, (), amounts=None, timezone="Europe/Paris", sheet=None).file_format.timezone
    assert read_local_time(text, zone, field="x") == moment


@pytest.mark.parametrize("text", ["03/25/2026 10:00", "2026-02-30", "29-03-2026 02:30", "2026-03-01 25:00"])
def test_a_time_that_does_not_exist_is_refused_in_words(text):
    zone = load_mapping(None, (), amounts=None, timezone="Europe/Paris", sheet=None).file_format.timezone
    assert isinstance(read_local_time(text, zone, field="occurred_at"), ApiError)


def test_a_refused_cell_refuses_its_row_and_shows_it():
    (row,) = opened(b"external_id;total_amount_cents\nT1;1,234\n", ImportKind.SALES, amounts="decimal").rows
    assert row.error is not None
    assert b"1,234" in row.body


@pytest.mark.parametrize("text", ["59,00 €", "12 euros", ",50", "1.23.45"])
def test_what_is_no_decimal_amount_is_refused_in_words_of_amounts(text):
    content = f"external_id;total_amount_cents\nT1;{text}\n".encode()
    (row,) = opened(content, ImportKind.SALES, amounts="decimal").rows
    assert row.error is not None
    assert f"'{text}' is not an amount" in row.error.detail
    assert text.encode() in row.body


@pytest.mark.parametrize("column", ["external_id", "phone_number"])
@pytest.mark.parametrize("text", ["4,71E+12", "3.36123E+10", "+3,36123E+10", "5E+15"])
def test_a_number_that_a_spreadsheet_shortened_is_no_id(column, text):
    """Two customers whose ids lost their last digits would become one."""
    (row,) = opened(f"{column};first_name\n{text};Zoé\n".encode(), ImportKind.PROFILES).rows
    assert row.error is not None
    assert row.error.errors[0].field == column
    assert "format its column as text" in row.error.detail


def test_ids_that_look_like_numbers_and_texts_that_look_shortened_are_taken():
    content = b"external_id;first_name\n4711E12;4,71E+12\n00123;x\n"
    assert [row["external_id"] for row in objects(content, ImportKind.PROFILES)] == ["4711E12", "00123"]
    assert all(row.error is None for row in opened(content, ImportKind.PROFILES).rows)


def test_without_options_cells_are_taken_as_the_api_takes_them():
    assert objects(b"external_id;total_amount_cents;occurred_at\nT1;89,00;01/03/2026\n", ImportKind.SALES) == [
        {"external_id": "T1", "total_amount_cents": "89,00", "occurred_at": "01/03/2026"}
    ]


@pytest.mark.parametrize("kind", ImportKind)
def test_the_documented_columns_are_those_of_the_requests(kind):
    (row,) = [line for line in DOCUMENT.splitlines() if line.startswith(f"| {kind.value} |")]
    columns = columns_of(kind)
    documented = {name for name in row.split("`")[1::2] if not name.endswith("ANYTHING")}
    assert documented == set(columns.cells)
    assert {name.removesuffix("ANYTHING") for name in row.split("`")[1::2] if name.endswith("ANYTHING")} == set(
        columns.map_prefixes
    )


def test_the_kinds_of_cells_follow_from_the_requests():
    cells = columns_of(ImportKind.SALES).cells
    assert {name for name, each in cells.items() if each is CellKind.JSON} == {"payments", "loyalty", "metadata"}
    assert cells["line_items.unit_price_cents"] is CellKind.CENTS
    assert cells["line_items.quantity"] is CellKind.NUMBER
    assert cells["occurred_at"] is CellKind.TIMESTAMP
    assert cells["line_items.product.name"] is CellKind.TEXT


def test_nothing_is_mapped_in_a_file_without_columns():
    with pytest.raises(FileError, match="no columns to map"):
        read_file(io.BufferedReader(io.BytesIO(b"{}")), ImportKind.STORES, None, FileMapping({"a": "b"}))
