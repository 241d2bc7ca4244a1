"""The base of all pages: sessions and roles, routing, forms, lists and rendering. It imports no business module.

It owns no table. A module's `pages.py` declares `Page`s and `Form`s with it, as its `api.py` declares routes with
`http`.
"""
