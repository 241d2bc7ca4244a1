"""Looking at texts and replies as pages show them; it only reads."""
