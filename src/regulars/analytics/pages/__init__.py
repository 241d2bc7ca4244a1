"""The pages of analytics: filters, charts and tables."""
