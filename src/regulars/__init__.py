"""Regulars mirrors a retailer's customers, shops and sales, and keeps a provable record of SMS consent."""
