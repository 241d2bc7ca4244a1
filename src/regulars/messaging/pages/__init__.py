"""The pages about texts: messages, conversations, the inbox, and how an organization texts."""
