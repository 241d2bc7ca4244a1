"""The one error of the embedded database."""


class EmbeddedDatabaseError(Exception):
    """The embedded PostgreSQL cannot be used; the message is one sentence for the person who runs the command."""
