import io

import msgspec
import pytest

from regulars.imports.file_reader import read_file
from regulars.imports.model import ROW_BYTES_MAX, FileError, ImportKind


def rows(content, kind, form=None):
    stream = io.BufferedReader(io.BytesIO(content.encode() if isinstance(content, str) else content))
    return list(read_file(stream, kind, form).rows)


def objects(content, kind):
    return [msgspec.json.decode(row.body) for row in rows(content, kind)]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_dotted_columns_become_objects_whatever_separates_them(delimiter):
    header = delimiter.join(["external_id", "address.locality", "address.country_code"])
    record = delimiter.join(["S1", "Lyon", "FR"])
    assert objects(f"{header}\n{record}\n", ImportKind.STORES) == [
        {"external_id": "S1", "address": {"locality": "Lyon", "country_code": "FR"}}
    ]


def test_an_attribute_column_may_have_dots_in_its_key():
    assert objects("external_id,attributes.size.top\nC1,M\n", ImportKind.PROFILES) == [
        {"external_id": "C1", "attributes": {"size.top": "M"}}
    ]


def test_an_empty_cell_leaves_its_field_out():
    assert objects("external_id,first_name,last_name\nC1,,Martin\n", ImportKind.PROFILES) == [
        {"external_id": "C1", "last_name": "Martin"}
    ]


def test_records_of_one_ticket_become_its_lines():
    content = (
        "external_id,total_amount_cents,line_items.quantity,line_items.product.name,line_items.product.properties.a.b\n"
        "S1:1,300,1,Shirt,x\nS1:1,,0.1234567891,Belt,\nS1:2,100,2,,\n"
    )
    assert objects(content, ImportKind.SALES) == [
        {
            "external_id": "S1:1",
            "total_amount_cents": 300,
            "line_items": [
                {"quantity": 1, "product": {"name": "Shirt", "properties": {"a.b": "x"}}},
                {"quantity": 0.1234567891, "product": {"name": "Belt"}},
            ],
        },
        {"external_id": "S1:2", "total_amount_cents": 100, "line_items": [{"quantity": 2}]},
    ]


def test_lines_that_disagree_about_their_ticket_are_refused_with_it():
    (row,) = rows("external_id,currency,line_items.quantity\nS1:1,EUR,1\nS1:1,GBP,1\n", ImportKind.SALES)
    assert row.error is not None
    assert row.error.errors[0].code == "INCONSISTENT"


def test_a_number_that_is_none_stays_text_for_the_api_to_refuse():
    (ticket,) = objects("external_id,total_amount_cents\nS1:1,1e5\n", ImportKind.SALES)
    assert ticket["total_amount_cents"] == "1e5"


def test_a_document_cell_cannot_smuggle_in_other_fields():
    (ticket,) = objects('external_id,payments\nS1:1,"null,""total_amount_cents"":5"\n', ImportKind.SALES)
    assert ticket == {"external_id": "S1:1", "payments": 'null,"total_amount_cents":5'}


def test_a_document_cell_is_stored_to_the_letter():
    (row,) = rows('external_id,metadata\nS1:1,"{""b"":1.50,""a"":2}"\n', ImportKind.SALES)
    assert b'{"b":1.50,"a":2}' in row.body


@pytest.mark.parametrize(
    "header", ["external_id,adress.locality", "external_id,external_id", "", "external_id,attributes."]
)
def test_a_header_that_would_lose_data_is_refused(header):
    with pytest.raises(FileError):
        rows(header + "\nx,y\n", ImportKind.PROFILES, "csv")


def test_a_record_that_is_no_text_or_too_long_is_refused_alone():
    # A byte that neither UTF-8 nor Windows-1252 knows.
    found = rows(b"external_id,name\nS1,\x81\nS2,a,b\nS3,fine\n", ImportKind.STORES)
    assert [row.error is None for row in found] == [False, False, True]
    assert [row.number for row in found] == [2, 3, 4]


def test_a_byte_order_mark_is_no_part_of_the_first_field():
    assert objects(b"\xef\xbb\xbfexternal_id\nS1\n", ImportKind.STORES) == [{"external_id": "S1"}]
    assert objects(b'\xef\xbb\xbf{"external_id":"S1"}\n', ImportKind.STORES) == [{"external_id": "S1"}]


def test_lines_of_json_are_handed_on_as_they_are_and_empty_ones_skipped():
    found = rows('{"a":1.50}\n\n  \nnot json\r\n', ImportKind.STORES, "ndjson")
    assert [(row.number, row.body) for row in found] == [(1, b'{"a":1.50}'), (4, b"not json")]


def test_a_line_without_end_is_refused_and_the_next_one_read():
    long = b'{"a":"' + b"x" * (2 * ROW_BYTES_MAX) + b'"}\n'
    found = rows(long + b'{"a":1}\n', ImportKind.STORES)
    assert [row.error is None for row in found] == [False, True]
    assert len(found[0].body) < 5000
