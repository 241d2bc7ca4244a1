"""How an organization texts: brand, provider, rules, caps, notices, hold. Owns `sms_settings`."""
