"""The text settings of an organization: brand, SMS provider, sending hours, frequency caps, opt-out notices and hold.
Owns `sms_settings`."""
