"""The inbox of collisions: tickets that came again with other content, until a person has looked at them."""
