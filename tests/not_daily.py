"""What `bin/test` leaves out and `bin/test --all` runs, each with its reason.

A pattern is a beginning of test ids, in which `*` stands for any text. Only repetitions of a daily test belong here.
"""

NOT_DAILY: dict[str, str] = {}
