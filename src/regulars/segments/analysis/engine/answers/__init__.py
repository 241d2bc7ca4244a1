"""Answers to questions of analytics, from the columns of one snapshot."""
