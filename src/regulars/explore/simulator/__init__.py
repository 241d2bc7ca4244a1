"""The SMS simulator: a phone on a page that shows the texts sent to a number, and can reply."""
