"""Search over customers, tickets and stores."""
