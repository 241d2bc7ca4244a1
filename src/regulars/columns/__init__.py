"""The columns beside the rows: a columnar copy of customers and sales, from which the process that counts answers
segments and figures.

Owns `segment_columns`, `segment_customers`, `segment_runs`, `segment_blobs` and `segment_fed`.
"""
