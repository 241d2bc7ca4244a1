"""The pages of journeys: lists, the flow with its figures, runs and traces, the builder, versions and backtests."""
