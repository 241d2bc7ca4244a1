"""The text settings of an organization: brand, provider, rules, caps, notices, hold. Owns `sms_settings`."""
