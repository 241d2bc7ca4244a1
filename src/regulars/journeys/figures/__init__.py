"""What happened at the steps of journeys, as it was counted when it happened."""
