"""The pages about texts: sent and received messages, conversations, the inbox of replies, and the text settings."""
