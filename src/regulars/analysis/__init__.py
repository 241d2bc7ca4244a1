"""The process that counts: answers requests about segments and figures from columns, and compacts these. No other
process loads NumPy and Polars."""
