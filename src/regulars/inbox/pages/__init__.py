"""The pages of messages: sent and received ones, conversations, the inbox of replies, and links to opt out."""
