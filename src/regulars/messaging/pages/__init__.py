"""The pages about texts: messages, conversations, the inbox, and the settings of texting."""
