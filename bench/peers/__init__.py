"""What a user would write instead: the peers Regulars is measured against."""
