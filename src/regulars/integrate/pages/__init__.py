"""The pages of the area Integrate."""
