"""The state and the storage format of the columns: a columnar copy of an organization's customers and sales."""
