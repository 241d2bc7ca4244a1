"""Saves, lists and deletes views of analytics. A view is a page with its filters, under a name, of one user, who may
share it in the organization."""

from uuid import UUID

from regulars.analytics.model import VIEWS_MAX, SavedView, TooManyViews
from regulars.kit.db import Tx


async def save_view(tx: Tx, organization_id: UUID, user_id: UUID, *, page: str, view: SavedView) -> None:
    """Save a view; a view with the same name is replaced."""
    own = {saved.name for saved in await list_views(tx, organization_id, user_id, page=page) if saved.is_own}
    if len(own) >= VIEWS_MAX and view.name not in own:
        raise TooManyViews
    await tx.execute(
        """
        INSERT INTO saved_views (organization_id, user_id, page, name, query, is_shared, created_at)
        VALUES (%s, %s, %s, %s, %s, %s, %s)
        ON CONFLICT (organization_id, user_id, page, name)
        DO UPDATE SET query = excluded.query, is_shared = excluded.is_shared
        """,
        (organization_id, user_id, page, view.name, view.query, view.is_shared, tx.now),
    )


async def list_views(tx: Tx, organization_id: UUID, user_id: UUID, *, page: str) -> list[SavedView]:
    """The views of a user and then those that others share, each sorted by name."""
    rows = await tx.fetch(
        """
        SELECT name, query, is_shared, user_id = %(user_id)s AS is_own FROM saved_views
        WHERE organization_id = %(organization_id)s AND page = %(page)s AND (user_id = %(user_id)s OR is_shared)
        ORDER BY is_own DESC, name
        LIMIT %(limit)s
        """,
        {"organization_id": organization_id, "user_id": user_id, "page": page, "limit": 2 * VIEWS_MAX},
    )
    return [SavedView(*row) for row in rows]


async def find_shared_view(tx: Tx, organization_id: UUID, *, page: str, name: str) -> SavedView | None:
    """Find the shared view with this name, the oldest if there are several."""
    rows = await tx.fetch(
        """
        SELECT name, query, is_shared FROM saved_views
        WHERE organization_id = %s AND page = %s AND name = %s AND is_shared
        ORDER BY created_at
        LIMIT 1
        """,
        (organization_id, page, name),
    )
    return next((SavedView(*row) for row in rows), None)


async def delete_view(tx: Tx, organization_id: UUID, user_id: UUID, *, page: str, name: str) -> bool:
    """Delete a view; return whether it existed."""
    deleted = await tx.execute(
        "DELETE FROM saved_views WHERE organization_id = %s AND user_id = %s AND page = %s AND name = %s",
        (organization_id, user_id, page, name),
    )
    return deleted > 0
