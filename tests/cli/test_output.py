"""Tables of commands."""

import time

import pytest

from regulars.cli import output

HEADINGS = ["ID", "NAME", "CREATED (UTC)"]


def test_a_table_of_ten_thousand_rows_takes_less_than_a_second(capsys):
    rows = [[f"org_{number:026d}", f"Shop {number}", "2026-11-18 01:43:46"] for number in range(10_000)]
    began = time.process_time()
    output.print_table(HEADINGS, rows)
    assert time.process_time() - began < 1
    assert len(capsys.readouterr().out.splitlines()) == len(rows) + 1


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [["a", "", "c"], ["bbbbbb", "x y  ", "d"]],
        [["é", "日本", "😀"], ["e\u0301", "x", "y"]],
        [["a", "two\nlines", "c"]],
        [["a", "b" * 300, "c"]],
    ],
)
def test_a_table_looks_the_same_whether_it_has_to_be_wrapped_or_not(capsys, rows):
    output.print_table(HEADINGS, rows)
    printed = capsys.readouterr().out
    output._print_wrapped(HEADINGS, rows)
    assert printed == capsys.readouterr().out
