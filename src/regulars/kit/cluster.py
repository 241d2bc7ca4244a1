"""Whether the database is a cluster (Citus), whose organizations lie on several nodes."""

from typing import Final, LiteralString

IS_CLUSTER: Final[LiteralString] = "SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus')"
