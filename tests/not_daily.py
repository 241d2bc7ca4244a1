"""What `bin/test` leaves out and `bin/test --all` runs, each with its reason.

A pattern is a beginning of test ids, in which `*` stands for any text. Only repetitions of a daily test belong here.
"""

NOT_DAILY: dict[str, str] = {
    "tests/crash/test_sample.py::test_nothing_is_lost_doubled_or_stuck[fact": "crash trials beyond the first",
    "tests/crash/test_sample.py::test_nothing_is_lost_doubled_or_stuck[c": "crash trials beyond the first",
    "tests/crash/test_sample.py::test_planted_mistakes_are_found": "crash trials beyond the first",
}
