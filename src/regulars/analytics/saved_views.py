"""Saves, lists and deletes views of analytics. A view is a page with its filters, under a name, for one user."""

from uuid import UUID

from regulars.analytics.model import VIEWS_MAX, SavedView, TooManyViews
from regulars.kit.db import Tx


async def save_view(tx: Tx, organization_id: UUID, user_id: UUID, *, page: str, view: SavedView) -> None:
    """Save a view; a view with the same name is replaced."""
    existing = await list_views(tx, organization_id, user_id, page=page)
    if len(existing) >= VIEWS_MAX and view.name not in {saved.name for saved in existing}:
        raise TooManyViews
    await tx.execute(
        """
        INSERT INTO saved_views (organization_id, user_id, page, name, query, created_at)
        VALUES (%s, %s, %s, %s, %s, %s)
        ON CONFLICT (organization_id, user_id, page, name) DO UPDATE SET query = excluded.query
        """,
        (organization_id, user_id, page, view.name, view.query, tx.now),
    )


async def list_views(tx: Tx, organization_id: UUID, user_id: UUID, *, page: str) -> list[SavedView]:
    """The views of a user, sorted by name."""
    return await tx.fetch_all(
        SavedView,
        """
        SELECT {columns} FROM saved_views
        WHERE organization_id = %s AND user_id = %s AND page = %s
        ORDER BY name
        LIMIT %s
        """,
        (organization_id, user_id, page, VIEWS_MAX),
    )


async def delete_view(tx: Tx, organization_id: UUID, user_id: UUID, *, page: str, name: str) -> bool:
    """Delete a view; return whether it existed."""
    deleted = await tx.execute(
        "DELETE FROM saved_views WHERE organization_id = %s AND user_id = %s AND page = %s AND name = %s",
        (organization_id, user_id, page, name),
    )
    return deleted > 0
