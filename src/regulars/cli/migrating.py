"""`regulars migrate`: bring the database to the schema of this release."""

from regulars.cli import database, restoring
from regulars.cli.output import err
from regulars.kit import migrate as migrations
from regulars.kit import settings


def migrate() -> None:
    """Apply the migrations that are missing; safe while servers run and when several nodes do it at once."""
    with database.opened(settings.load(), may_create=True) as url:
        applied = migrations.migrate(url)
        restoring.finish(url)
    err.print(f"Applied {', '.join(applied)}." if applied else "Nothing to do: the schema is up to date.", markup=False)
