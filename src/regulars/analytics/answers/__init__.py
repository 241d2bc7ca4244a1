"""Answers to analytics questions, computed from the columnar data of one snapshot."""
