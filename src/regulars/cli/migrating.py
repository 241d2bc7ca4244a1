"""`regulars migrate`: bring the database to the schema of this release."""

from regulars.cli import database
from regulars.cli.output import err
from regulars.kit import migrate as migrations
from regulars.kit import settings


def migrate() -> None:
    with database.opened(settings.load(), may_create=True) as url:
        applied = migrations.migrate(url)
        database.finish_restore(url)
    err.print(f"Applied {', '.join(applied)}." if applied else "Nothing to do: the schema is up to date.", markup=False)
