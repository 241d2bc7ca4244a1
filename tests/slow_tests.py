"""Tests and shared fixtures that may take longer than the limits of `bin/check`, each with its reason.

The limits are `DAILY_S` for a daily test and `WHOLE_S` for any other (`tests/support/suite.py`). They start first, since a
long test that starts late leaves the other process without work. Patterns are those of `tests/not_daily.py`.
"""

SLOW_TESTS: dict[str, str] = {
    "tests/crash/test_sample.py": "plays whole trials: start, load, kill, recovery, check",
    "tests/pages/test_every_page.py::test_no_page_keeps_people_out": "opens a quarter of all pages in a browser",
    "tests/pages/test_random_forms.py": "sends a form to every route and looks at all tables after each",
    "tests/schemathesis/test_schemathesis.py": "sends thousands of generated requests",
}
