"""Analytics: sales, customers, products and stores in a period, compared with another period."""
