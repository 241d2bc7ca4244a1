from tests.support.database_fixtures import database_url

__all__ = ["database_url"]
