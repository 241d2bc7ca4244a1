"""Tests and shared fixtures that may take longer than the limits of `bin/check`, each with its reason.

The limits are `DAILY_S` for a daily test and `WHOLE_S` for any other (`tests/support/durations.py`). They start first, since a
long test that starts late leaves the other process without work. Patterns are those of `tests/not_daily.py`.
"""

WALK = "walks through a whole piece of work in a browser"
PLANS = "reads the plan of every statement of the pages beside large tables"

SLOW_TESTS: dict[str, str] = {
    "tests/pages/test_first_run.py::test_the_walk": WALK,
    "tests/pages/test_campaigns_in_a_browser.py": WALK,
    "tests/pages/test_clicks_in_a_browser.py": WALK,
    "tests/pages/test_journeys_in_a_browser.py": WALK,
    "tests/pages/test_offline_in_a_browser.py": "waits until every part of a page notices that the server is gone",
    "tests/pages/test_panels.py": "examines every panel in both themes",
    "tests/pages/test_segments_in_a_browser.py::test_gold": WALK,
    "tests/pages/test_plans.py": PLANS,
    "tests/explore/test_plans.py": PLANS,
    "tests/platform/test_statement_plans.py": "reads the plan of every statement of the package",
    "tests/http/test_large_bodies.py::test_the_memory": "sends batches of many megabytes",
    "tests/crash/test_never_stuck.py": "waits for the time limit of a database that never answers",
    "tests/crash/test_failover.py::test_a_full_disk": "fills a disk and waits until writing goes on",
    "tests/migrations/test_release_before.py": "runs the commands and the server of the release before",
    "tests/demo/test_button.py": "loads a demo beside a worker",
    "tests/demo/test_runs.py": "loads a demo",
    "tests/cli/test_organization_delete.py": "loads two organizations with everything",
    "tests/cli/test_campaigns.py::test_a_campaign_is_created": "runs thirty commands, and one starts an analysis process",
    "tests/cli/test_serve.py::test_after_a_kill": "starts servers and kills them",
    "tests/cli/test_serve.py::test_a_postgresql_that_is_killed": "kills PostgreSQL beneath a server, which starts it again",
    "tests/cli/test_explore.py::test_what_cannot": "asks a command many refused questions",
    "tests/columns/test_oracle.py::test_columns_and_rows": "asks hundreds of questions of two random shops",
    "tests/sales/test_blocks.py::test_a_search": "searches blocks of sales by hundreds of random filters",
    "tests/pages/test_accounts_in_a_browser.py::test_invite": WALK,
    "tests/crash/test_failover.py::test_a_failover": "makes a standby and promotes it",
    "tests/cli/test_serve.py::test_one_command": "starts a server with a new database, as it is typed",
    "tests/cli/test_stop.py": "stops servers under load, each with the time in which connections drain",
    "tests/crash/test_sample.py": "plays whole trials: start, load, kill, recovery, check",
    "tests/pages/test_every_page.py::test_no_page_keeps_people_out": "opens pages at four widths in a browser",
    "tests/pages/test_masking.py::test_no_page_shows": "opens every page as two roles",
    "tests/pages/test_random_forms.py": "sends a form to every route and looks at all tables after each",
    "tests/schemathesis/test_schemathesis.py": "sends thousands of generated requests",
}
