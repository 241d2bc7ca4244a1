"""Tools that know nothing of the business domain: settings, database, ids, time, errors, JSON, logs, metrics. Every
module may use them."""
