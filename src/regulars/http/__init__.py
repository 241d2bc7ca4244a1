"""The HTTP layer of the JSON API: routes, limits, batches of writes, error responses and the OpenAPI document."""
