"""The errors of the embedded PostgreSQL and of PostgreSQL's programs."""


class EmbeddedDatabaseError(Exception):
    """The embedded PostgreSQL cannot be used; the message is one sentence for the person who runs the command."""


class ProgramsError(Exception):
    """PostgreSQL's programs cannot reach or serve a database; the message is one sentence for the operator."""
