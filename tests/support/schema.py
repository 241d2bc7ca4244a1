"""Writes src/regulars/migrations/schema.sql, the result of all migrations, and describes the schema of a database.

Run as `bin/schema`.
"""

import re
import subprocess
from pathlib import Path

import psycopg
from tests.support import database

from regulars.kit import migrate
from regulars.postgres import embedded

SCHEMA_FILE = migrate.MIGRATIONS / "schema.sql"
HEADING = """\
-- The schema after all migrations, for reading.
-- Written by bin/schema; a test holds it equal to the migrations.
"""
# Lines of pg_dump about the session and itself, not about the schema.
NOISE = re.compile(r"(SET |SELECT pg_catalog\.set_config|\\(un)?restrict |--)")

# Each row is one property of the schema as PostgreSQL prints it, so two databases of one server differ only where
# their schemas do.
FACTS = b"""
SELECT format('column %s.%s %s %s null=%s default=%s generated=%s',
              c.relname, a.attname, row_number() OVER (PARTITION BY c.oid ORDER BY a.attnum),
              format_type(a.atttypid, a.atttypmod), NOT a.attnotnull, pg_get_expr(d.adbin, d.adrelid), a.attgenerated)
FROM pg_class c
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'c')
UNION ALL
SELECT format('constraint %s.%s %s', conrelid::regclass, conname, pg_get_constraintdef(oid))
FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND contype NOT IN ('n', 't')
UNION ALL
SELECT format('index %s', pg_get_indexdef(i.indexrelid))
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE c.relnamespace = 'public'::regnamespace
UNION ALL
SELECT format('function %s', pg_get_functiondef(oid))
FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND prokind IN ('f', 'p')
UNION ALL
SELECT format('trigger %s', pg_get_triggerdef(oid)) FROM pg_trigger WHERE NOT tgisinternal
UNION ALL
SELECT format('enum %s %s', t.typname, string_agg(e.enumlabel, ',' ORDER BY e.enumsortorder))
FROM pg_type t JOIN pg_enum e ON e.enumtypid = t.oid WHERE t.typnamespace = 'public'::regnamespace GROUP BY t.typname
UNION ALL
SELECT format('sequence %s %s %s', sequencename, data_type, increment_by)
FROM pg_sequences WHERE schemaname = 'public'
UNION ALL
SELECT format('options %s %s', relname, reloptions)
FROM pg_class WHERE relnamespace = 'public'::regnamespace AND reloptions IS NOT NULL
"""


def facts(url: str) -> set[str]:
    with psycopg.connect(url) as connection:
        return {fact for (fact,) in connection.execute(FACTS).fetchall()}


def dump(url: str, programs: Path) -> str:
    command = [programs / "pg_dump", "--schema-only", "--no-owner", "--no-privileges", "--no-comments", url]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    lines = [line for line in text.splitlines() if not NOISE.match(line)]
    body = re.sub(r"\n{2,}", "\n\n", "\n".join(lines)).strip().replace("public.", "")
    return f"{HEADING}\n{body}\n"


def main() -> None:
    data_dir = database.new_data_folder()
    with database.throwaway_server(data_dir) as server_url, database.new_database(server_url) as url:
        migrate.migrate(url)
        SCHEMA_FILE.write_text(dump(url, embedded.binaries(data_dir)))


if __name__ == "__main__":
    main()
