"""Tools without a domain word: settings, database, ids, time, errors, JSON, logs, metrics. Every room may use them."""
