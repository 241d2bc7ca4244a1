"""Writes the columns, a columnar copy of customers and sales: the build copies the existing rows, and listeners of
recorded events keep the copy up to date."""
