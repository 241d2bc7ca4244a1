"""Pages: who visits, what they may do, how a page, a form and a list are made. It knows no room.

Owns no table. A room's `pages.py` declares `Page`s and `Form`s and stands on this as its `api.py` stands on `http`.
"""
