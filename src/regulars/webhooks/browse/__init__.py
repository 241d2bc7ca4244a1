"""Looking at endpoints and deliveries as pages show them; it only reads."""
