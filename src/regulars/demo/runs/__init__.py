"""The demo as a job: asked for on a page, done by the worker, seen while it runs. Owns the table `demo_runs`."""
