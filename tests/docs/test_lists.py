from tests.docs.list_columns import PATH, list_declared, render

from regulars.lists.columns import Place


def test_the_page_of_columns_is_written_from_the_declarations():
    assert PATH.read_text(encoding="utf-8") == render()


def test_every_column_stands_somewhere_and_names_are_unique():
    for each in list_declared():
        columns = each.columns.columns
        assert all(column.places & Place.ALL for column in columns), each.path
        assert len({column.name for column in columns}) == len(columns), each.path
        # A heading belongs to a column of the page.
        assert all(Place.PAGE in column.places for _, column in each.columns.heads), each.path
