"""The builder of journeys: its forms change the draft, one step or condition at a time."""
