"""Blocks of 500 sales, with what each contains, so that a list with a filter without an index reads few sales.

Owns `sale_blocks` and `sale_block_builds`. The worker builds the blocks of all sales of an organization and those of
each store, in the order of ids (`build.py`); the list skips blocks without a matching sale (`search.py`). The newest
sales are in no block yet, and are read one by one.
"""
