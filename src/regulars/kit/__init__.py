"""Infrastructure without business rules: settings, database, ids, time, errors, JSON, logs, metrics."""
