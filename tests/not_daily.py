"""What `bin/test` leaves out and `bin/test --all` runs, each with its reason.

A pattern is a beginning of test ids, in which `*` stands for any text. Only repetitions of a daily test belong here.
"""

OTHER_TRIALS = "crash trials beyond the first"
POWER_CUTS = "what a power cut leaves behind; tests/platform/test_embedded_sharing.py kills PostgreSQL daily"
# Of the seeds of an oracle, the daily one has all kinds of shops: large amounts, two paths, a change of the clock.
OTHER_SEEDS = "further seeds of an oracle"
EVERY_WIDTH = "pages with figures at four widths and in both themes; tests/pages examines every page daily"

ONE_PROCESS = "a server of one process, where the daily set has one of two"
# Random examples of each property; everything takes a hundred.
DAILY_EXAMPLES = 40

NOT_DAILY: dict[str, str] = {
    "tests/crash/test_sample.py::test_nothing_is_lost_by_other_faults": OTHER_TRIALS,
    "tests/crash/test_sample.py::test_planted_mistakes_are_found": OTHER_TRIALS,
    "tests/crash/test_never_stuck.py::test_a_backend_that_dies*[1]": ONE_PROCESS,
    "tests/cli/test_serve.py::test_a_postgresql_that_is_killed*[one_process]": ONE_PROCESS,
    "tests/cli/test_stop.py::*[arguments0]": ONE_PROCESS,
    "tests/pages/test_random_forms.py::*[in full": "random forms beyond one per route",
    "tests/pages/test_random_forms.py::test_a_random_query_is_answered": "random queries of every page, after a crawl",
    "tests/platform/test_embedded_power_cut.py::test_a_copy_of_the_programs": POWER_CUTS,
    "tests/platform/test_embedded_power_cut.py::test_an_unreadable_pid_file": POWER_CUTS,
    "tests/schemathesis/test_schemathesis.py::*[invalid data]": "generated bad inputs; tests/bad_inputs has each kind",
    "tests/schemathesis/test_schemathesis.py::*[calls that follow one another]": "further generated sequences of calls",
    "tests/columns/test_oracle.py::test_columns_and_rows_agree[1]": OTHER_SEEDS,
    "tests/columns/test_oracle.py::test_they_agree_after_everything_happened_at_once[1]": OTHER_SEEDS,
    "tests/analytics/test_answers.py::test_every_figure_is_that_of_the_rows[0]": OTHER_SEEDS,
    "tests/analytics/test_lift_answers.py::test_the_sums_of_both_groups_are_those_of_their_rows[1]": OTHER_SEEDS,
    **{
        f"tests/analytics/test_sales_figures.py::test_every_figure_equals_plain_sql_over_the_rows[{seed}]": OTHER_SEEDS
        for seed in (0, 1, 2, 4, 5)
    },
    "tests/sales/test_quick.py::test_random_traffic*-2]": OTHER_SEEDS,
    "tests/sales/test_quick.py::test_random_traffic*-3]": OTHER_SEEDS,
    "tests/sales/test_together.py::test_random_traffic*[2]": OTHER_SEEDS,
    "tests/sales/test_batch_paths.py::test_r*2]": OTHER_SEEDS,
    "tests/sales/test_batch_paths.py::test_r*3]": OTHER_SEEDS,
    "tests/analytics/test_pages_in_a_browser.py::test_axe": EVERY_WIDTH,
    "tests/attribution/test_pages_in_a_browser.py::test_axe": EVERY_WIDTH,
}
