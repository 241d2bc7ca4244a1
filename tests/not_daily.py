"""What `bin/test` leaves out and `bin/test --all` runs, each with its reason.

A pattern is a beginning of test ids, in which `*` stands for any text. Only what daily tests repeat belongs here: the daily
set has to notice 97 of 100 mistakes that everything notices (`bin/mutants`).
"""

# Random examples of each property; everything takes a hundred.
DAILY_EXAMPLES = 40

_BY_REASON: dict[str, tuple[str, ...]] = {
    "walks in a browser; daily tests send the same forms over HTTP": (
        "tests/pages/test_first_run.py::test_the_walk",
        "tests/pages/test_first_run.py::test_it_works_without_javascript",
        "tests/pages/test_campaigns_in_a_browser.py",
        "tests/pages/test_clicks_in_a_browser.py",
        "tests/pages/test_customers_in_a_browser.py::test_a_customer_is_found",
        "tests/pages/test_customers_in_a_browser.py::test_the_keyboard_alone",
        "tests/pages/test_customers_in_a_browser.py::test_a_ticket_a_collision",
        "tests/pages/test_customer_filters.py::test_the_keyboard_alone",
        "tests/pages/test_journeys_in_a_browser.py",
        "tests/pages/test_keys_in_a_browser.py",
        "tests/pages/test_segments_in_a_browser.py::test_gold",
        "tests/pages/test_segments_in_a_browser.py::test_the_answer",
        "tests/pages/test_segments_in_a_browser.py::test_a_journey",
        "tests/pages/test_webhooks_in_a_browser.py",
        "tests/pages/test_accounts_in_a_browser.py::test_the_main_tasks",
        "tests/pages/test_accounts_in_a_browser.py::test_the_organization",
        "tests/analytics/test_pages_in_a_browser.py::test_filters",
        "tests/attribution/test_pages_in_a_browser.py::test_a_phone",
    ),
    "further parts of pages that refresh themselves in a browser": (
        "tests/pages/test_offline_in_a_browser.py::test_every_part",
        "tests/pages/test_offline_in_a_browser.py::test_filters",
        "tests/pages/test_offline_in_a_browser.py::test_the_text",
        "tests/pages/test_slow_line_in_a_browser.py::test_figures",
        "tests/pages/test_slow_line_in_a_browser.py::test_two_values",
        "tests/pages/test_slow_line_in_a_browser.py::test_what_stands",
        "tests/pages/test_enter_in_editors.py::test_enter_counts_a_segment_and_explains_a_customer[False]",
    ),
    "pages at every width and in both themes; the daily set opens one in twenty": (
        *(
            f"tests/pages/test_every_page.py::test_no_page_keeps_people_out_or_leaves_its_screen[{n}]"
            for n in range(1, 20)
        ),
        "tests/pages/test_panels.py",
        "tests/analytics/test_pages_in_a_browser.py::test_axe",
        "tests/attribution/test_pages_in_a_browser.py::test_axe",
        "tests/attribution/test_pages_in_a_browser.py::test_the_name",
    ),
    "every page once more, in another time zone, as another role or beside large tables": (
        "tests/pages/test_ends_of_time.py::test_every_page_opens[America/New_York]",
        "tests/pages/test_masking.py::test_no_page_shows*[developer]",
        "tests/pages/test_plans.py::test_no_page",
    ),
    "crash trials; tests/cli/test_serve.py kills PostgreSQL beneath a server daily": (
        "tests/crash/test_sample.py::test_nothing",
        "tests/crash/test_sample.py::test_planted",
        "tests/crash/test_never_stuck.py",
    ),
    "what a power cut leaves behind; tests/platform/test_embedded_sharing.py kills PostgreSQL daily": (
        "tests/platform/test_embedded_power_cut.py::test_a_copy_of_the_programs",
        "tests/platform/test_embedded_power_cut.py::test_an_unreadable_pid_file",
        "tests/platform/test_embedded_power_cut.py::test_the_copy",
        "tests/platform/test_embedded_power_cut.py::test_the_new_cluster",
    ),
    "further servers, workers and commands as processes, beside a daily one of their module": (
        "tests/crash/test_failover.py::test_a_full_disk",
        "tests/cli/test_audit.py::test_every_command",
        "tests/cli/test_backup.py::test_it_carries",
        "tests/cli/test_backup.py::test_a_restore_that_is_killed",
        "tests/cli/test_backup.py::test_a_server_that_loses",
        "tests/cli/test_backup.py::test_nothing_is_restored",
        "tests/cli/test_backup_tls.py::test_a_server",
        "tests/cli/test_campaigns.py::test_a_question_about_a_cost",
        "tests/cli/test_campaigns.py::test_resume",
        "tests/cli/test_import.py::test_the_demo_fills",
        "tests/cli/test_main.py::test_migrate_makes",
        "tests/cli/test_pooler.py::test_doctor",
        "tests/cli/test_releases.py::test_a_worker_that_is_excluded",
        "tests/cli/test_restore.py::test_what_the_replaced",
        "tests/cli/test_restore.py::test_a_server_that_finds",
        "tests/cli/test_restore.py::test_a_backup_of_an_older",
        "tests/cli/test_serve.py::test_a_postgresql_that_is_killed*[one_process]",
        "tests/cli/test_secret_key.py::test_a_data_folder",
        "tests/cli/test_serve.py::test_after_a_kill",
        "tests/cli/test_serve.py::test_on_a_terminal",
        "tests/cli/test_serve.py::test_a_port",
        "tests/cli/test_serve.py::test_several_processes",
        "tests/cli/test_serve.py::test_a_second_server_in_another_container",
        "tests/cli/test_stop.py::*[arguments",
        "tests/inbox/test_over_http.py::test_a_withdrawal_is_answered",
        "tests/platform/test_embedded_generations.py::test_a_command",
        "tests/platform/test_embedded_generations.py::test_the_next_container",
        "tests/platform/test_scripts.py::test_a_mistake",
        "tests/platform/test_scripts.py::test_a_clone",
        "tests/platform/test_scripts.py::test_the_fastest_python*[microseconds1",
        "tests/platform/test_scripts.py::test_two_set_ups",
        "tests/migrations/test_release_before.py::test_its_commands",
        "tests/work/test_clock_steps.py::test_the_loop_goes_on",
        "tests/columns/test_process.py::test_it_counts_through",
    ),
    "waits for time limits that tests of their model check without waiting": (
        "tests/acceptance/test_idempotency.py::test_a_key_whose_first_request_does_not_finish",
        "tests/analytics/test_sales_figures.py::test_a_sale_is_in_the_figures_within",
        "tests/links/test_links.py::test_while_the_database_is_away",
        "tests/sales/test_quick.py::test_after_a_statement",
        "tests/sales/test_quick.py::test_two_processes",
        "tests/webhooks/test_fairness.py::test_what_could_outlive",
        "tests/webhooks/test_sending.py::test_a_slow_receiver",
        "tests/webhooks/test_schedule.py::test_nothing_is_lost_in_72_hours",
        "tests/work/test_held_up.py::test_a_batch_that_runs_out",
        "tests/work/test_held_up.py::test_rows_that_take_too_long",
        "tests/work/test_held_up.py::test_a_listener_that_is_held_up*[False",
        "tests/work/test_wake.py::test_a_wake_up_that_fails",
    ),
    "plans of statements and memory beside large tables and bodies": (
        "tests/http/test_large_bodies.py",
        "tests/attribution/test_windows.py::test_the_sample",
        "tests/http/test_rate_limit.py::test_memory",
        "tests/platform/test_statement_plans.py::test_no_statement",
        "tests/explore/test_plans.py::test_no_statement",
        "tests/columns/test_plans.py::test_a_batch_of_a_build",
        "tests/columns/test_plans.py::test_no_statement_reads_the_others_to_find_one[True]",
        "tests/kit/test_regular_expressions.py::test_no_pattern_is_slow",
        "tests/sales/test_rows_read.py::test_no_filter_of_sales",
    ),
    "how the suite and the mutants judge their own runs": (
        "tests/mutants/test_mutants.py::test_a_killer_that_fails",
        "tests/mutants/test_mutants.py::test_a_mutant_with_which_the_tests_do_not_start",
        "tests/architecture/test_suite.py::test_a_run_says",
        "tests/architecture/test_suite.py::test_what_is_slow",
        "tests/architecture/test_contracts.py::test_planted",
    ),
    "random forms beyond one per route, and random queries of every page after a crawl": (
        "tests/pages/test_random_forms.py::*[in full",
        "tests/pages/test_random_forms.py::test_a_random_query_is_answered",
    ),
    "generated requests; tests/bad_inputs and tests/acceptance have each kind": (
        "tests/schemathesis/test_schemathesis.py",
        "tests/properties/test_state_machine.py",
    ),
    # The daily seed has all kinds of shops: large amounts, two paths, a change of the clock.
    "further seeds of an oracle": (
        "tests/columns/test_oracle.py::test_columns_and_rows_agree[1]",
        "tests/columns/test_oracle.py::test_they_agree_after_everything_happened_at_once[1]",
        "tests/analytics/test_answers.py::test_every_figure_is_that_of_the_rows[0]",
        "tests/analytics/test_lift_answers.py::test_the_sums_of_both_groups_are_those_of_their_rows[1]",
        *(
            f"tests/analytics/test_sales_figures.py::test_every_figure_equals_plain_sql_over_the_rows[{seed}]"
            for seed in (0, 1, 2, 4, 5)
        ),
        "tests/attribution/test_oracle.py::test_credits_equal*[1]",
        "tests/sales/test_blocks.py::test_a_search*[False]",
        "tests/sales/test_quick.py::test_random_traffic*-2]",
        "tests/sales/test_quick.py::test_random_traffic*-3]",
        "tests/sales/test_together.py::test_random_traffic*[2]",
        "tests/sales/test_batch_paths.py::test_r*2]",
        "tests/sales/test_batch_paths.py::test_r*3]",
    ),
}
NOT_DAILY: dict[str, str] = {pattern: reason for reason, patterns in _BY_REASON.items() for pattern in patterns}
