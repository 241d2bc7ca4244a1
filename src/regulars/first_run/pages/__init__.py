"""The pages "First steps", "Connect your systems" for developers, and "Demo"."""
