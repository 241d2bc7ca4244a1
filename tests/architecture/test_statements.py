import ast
import re
from functools import cache
from pathlib import Path

import pytest
from tests.support import syntax
from tests.support.package_statements import held_statements
from tests.support.project import PACKAGE, ROOT
from tests.support.statements import Statement, statements

from regulars.kit.cluster import LOCAL_TABLES

OWNERS = {
    "organizations": {"organizations", "organization_slugs", "api_keys", "public_address"},
    "demo": {"demo_runs"},
    "privacy": {"erasures", "erasures_to_replay", "restore_marker"},
    "accounts": {
        "users",
        "memberships",
        "sessions",
        "sign_in_links",
        "recovery_codes",
        "sign_in_failures",
        "sign_in_places",
        "audit_log",
        "audit_heads",
    },
    "idempotency": {"idempotency_keys"},
    "work": {
        "outbox",
        "outbox_retries",
        "interests",
    },
    "request_log": {"request_log", "request_counts"},
    "stores": {"stores"},
    "profiles": {"profiles"},
    "catalog": {"profile_attributes", "product_properties", "catalog_counts", "catalog_tallies", "catalog_products"},
    "webhooks": {"webhook_endpoints", "webhook_messages", "webhook_deliveries", "webhook_attempts"},
    "consent": {"subscriptions", "consent_ledger", "consent_payloads", "consent_figures"},
    "journeys": {
        "journeys",
        "journey_versions",
        "journey_activations",
        "journey_customers",
        "journey_runs",
        "journey_trace",
        "journey_backtests",
        "journey_drafts",
        "journey_totals",
    },
    "campaigns": {
        "campaigns",
        "campaign_audiences",
        "campaign_recipients",
        "campaign_totals",
        "campaign_settings",
        "campaign_costs",
    },
    "analytics": {"saved_views"},
    "attribution": {
        "attributed_sales",
        "attribution_totals",
        "attribution_months",
        "attribution_customers",
        "attribution_recomputes",
        "attribution_settings",
        "lifts",
        "sent_texts",
        "sent_text_months",
    },
    "columns": {"segment_columns", "segment_customers", "segment_runs", "segment_blobs", "segment_fed"},
    "segments": {
        "segments",
        "segment_versions",
        "segment_uses",
        "segment_keys",
        "segment_sizes",
    },
    "experiments": {"holdouts", "holdout_quarters", "holdout_customers", "journey_holdouts"},
    "inbox": {"replies", "suppressions", "erased_replies"},
    "texts": {
        "texts",
        "sms_settings",
        "simulated_texts",
        "text_totals",
        "stopped_origins",
        "sender_rates",
        "test_numbers",
    },
    "links": {"links", "link_prefixes", "clicks", "click_totals"},
    "sales": {
        "sales_events",
        "ticket_collisions",
        "ticket_collision_totals",
        "hourly_totals",
        "hourly_totals_fills",
        "sales_totals",
        "sales_totals_fills",
        "sale_blocks",
        "sale_block_builds",
    },
}
# The runner of migrations keeps its own register, and the vault the fingerprint of its key.
NO_ROOM = {"migrations", "vault_key"}
# The recording statement of sales also inserts light profiles, idempotency, outbox and webhook rows; a test of that
# room shows that it leaves the same rows as the owners' own functions.
MAY_WRITE_ANYTHING = {PACKAGE / "sales" / "statements.py"}
MAY_ALSO_WRITE = {
    # The transaction that stores the outcome of an answer decides its reply, and the inbox stands above texts.
    PACKAGE / "texts" / "queries" / "replies.py": {"replies"},
    # An erasure locks links, texts and replies in one order, and empties a text that is on its way.
    PACKAGE / "inbox" / "retention.py": {"texts"},
    # The due time of the poll stands in the row of the provider's settings.
    PACKAGE / "inbox" / "poll.py": {"sms_settings"},
}


def migrated_tables() -> set[str]:
    files = (PACKAGE / "migrations").glob("[0-9]*.sql")
    return {name for file in files for name in re.findall(r"CREATE TABLE (?:IF NOT EXISTS )?(\w+)", file.read_text())}


def room_of(file: Path) -> str:
    return file.relative_to(PACKAGE).parts[0]


@cache
def all_statements() -> list[Statement]:
    files = (file for file in PACKAGE.rglob("*.py") if room_of(file) != "kit")
    written = [statement for file in files for statement in statements(file, file.read_text())]
    held = [Statement(file_of(module), name, text) for module, name, text in held_statements()]
    return written + held


def file_of(module: str) -> Path:
    return PACKAGE.joinpath(*module.split(".")[1:]).with_suffix(".py")


def trespasses(statement: Statement) -> set[str]:
    if statement.file in MAY_WRITE_ANYTHING:
        return set()
    may_write = OWNERS.get(room_of(statement.file), set()) | MAY_ALSO_WRITE.get(statement.file, set())
    return (statement.tables_written() & set().union(*OWNERS.values())) - may_write


def forgets_the_organization(statement: Statement, tables: set[str]) -> bool:
    """Each time a table of organizations is named, the column has to be named too: in its WHERE, its ON or its list."""
    named = [name for name in statement.tables_named() if name in tables - LOCAL_TABLES]
    return statement.text.count("organization_id") < len(named)


def place(statement: Statement) -> str:
    return f"{statement.file.relative_to(ROOT)}: {statement.name}"


def test_every_table_has_one_owner():
    owned = [table for tables in OWNERS.values() for table in tables]
    assert len(owned) == len(set(owned))
    assert migrated_tables() - set(owned) - NO_ROOM == set()


def test_a_room_writes_its_own_tables_only():
    assert {place(one): trespasses(one) for one in all_statements() if trespasses(one)} == {}


def test_every_statement_on_an_organization_s_table_names_the_organization():
    tables = migrated_tables()
    assert [place(one) for one in all_statements() if forgets_the_organization(one, tables)] == []


def test_the_reader_finds_the_statements_of_every_room():
    rooms = {room_of(one.file) for one in all_statements()}
    assert {"organizations", "idempotency", "stores", "profiles", "catalog", "consent"} <= rooms


def planted(body: str, *, room: str = "sales") -> Statement:
    (one,) = statements(PACKAGE / room / "queries.py", f'async def f(tx):\n    """UPDATE stores"""\n    {body}\n')
    return one


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ('tx.execute("INSERT INTO profiles (organization_id) VALUES (%s)")', {"profiles"}),
        ('tx.execute("UPDATE profiles SET name = %s WHERE organization_id = %s")', {"profiles"}),
        ('tx.execute("WITH gone AS (DELETE FROM stores WHERE organization_id = %s) SELECT 1")', {"stores"}),
        ('tx.execute("SELECT id FROM profiles WHERE organization_id = %s FOR UPDATE")', set()),
        ('tx.execute("INSERT INTO sales_events (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET id = 1")', set()),
    ],
)
def test_the_ownership_rule_sees_writes_and_only_writes(body, found):
    assert trespasses(planted(body)) == found


@pytest.mark.parametrize(
    ("body", "forgets"),
    [
        ('tx.fetch("SELECT id FROM profiles WHERE id = %s")', True),
        ('tx.fetch("SELECT id FROM profiles WHERE organization_id = %s AND id = %s")', False),
        ('tx.fetch("SELECT 1 FROM profiles p JOIN stores s ON s.id = p.id WHERE p.organization_id = %s")', True),
        ('tx.fetch("SELECT id FROM organizations WHERE name = %s")', False),
    ],
)
def test_the_organization_rule_sees_a_statement_that_forgets_it(body, forgets):
    assert forgets_the_organization(planted(body), {"profiles", "stores", "organizations"}) is forgets


NEIGHBOUR_IN_LATERAL = re.compile(r"LATERAL\s*\((?:(?!\bAS\b).)*?organization_id\s*=\s*\w+\.organization_id", re.DOTALL)


def test_inside_a_lateral_the_organization_is_a_value_and_not_a_neighbour_s_column():
    """On a cluster each table's node is found by the value; a neighbour's column would make it ask all of them."""
    offenders = [
        str(path.relative_to(ROOT))
        for path in PACKAGE.rglob("*.py")
        if NEIGHBOUR_IN_LATERAL.search(path.read_text(encoding="utf-8"))
    ]
    assert offenders == []
    assert NEIGHBOUR_IN_LATERAL.search("JOIN LATERAL (SELECT id FROM s WHERE organization_id = e.organization_id) AS s")
    assert not NEIGHBOUR_IN_LATERAL.search(
        "JOIN LATERAL (SELECT id FROM s WHERE organization_id = %s AND id = e.id) AS s"
    )


def formats_text(source: str) -> list[int]:
    """The lines on which a text is formatted. Parts of a statement are put together by the driver, which knows them for
    SQL, or by adding constants."""
    # Most files have none, and a search costs far less than a parse.
    if ".format" not in source:
        return []
    tree = syntax.parse(source)
    texts = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name) and _is_text(node.value)
    }
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in {"format", "format_map"}
        and (_is_text(node.func.value) or (isinstance(node.func.value, ast.Name) and node.func.value.id in texts))
    ]


def _is_text(node: ast.AST | None) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_text(node.left) or _is_text(node.right)
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def test_no_format_builds_a_statement():
    files = {one.file for one in all_statements()}
    assert {str(file.relative_to(ROOT)): formats_text(file.read_text()) for file in files} == {
        str(file.relative_to(ROOT)): [] for file in files
    }


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ('async def f(tx):\n    await tx.fetch("SELECT {} FROM stores".format(name))', [2]),
        ('_FIND = "SELECT id FROM {table}"\nFIND = _FIND.format(table="stores")', [2]),
        ('_FIND: str = "SELECT id" + " FROM {}"\nFIND = _FIND.format("stores")', [2]),
        ('_FIND = SQL("SELECT {columns} FROM stores")\nFIND = _FIND.format(columns=_COLUMNS)', []),
        ('FIND = SQL("SELECT {columns} FROM stores").format(columns=_COLUMNS)', []),
    ],
)
def test_the_rule_about_format_sees_what_it_should(source, lines):
    assert formats_text(source) == lines
