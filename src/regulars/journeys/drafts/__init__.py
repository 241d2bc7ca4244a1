"""What is being written before it becomes a version: one draft a journey, which the whole team shares."""
