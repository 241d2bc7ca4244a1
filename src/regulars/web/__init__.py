"""The base of all pages: sessions and roles, routing, forms, lists and rendering. It imports no room.

It owns no table. A room's `pages.py` declares `Page`s and `Form`s with it, as its `api.py` declares routes with `http`.
"""
