"""The pages of journeys: lists, the flow with its statistics, runs and traces, the builder, versions and backtests."""
