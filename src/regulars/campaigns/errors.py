"""The errors of the campaigns package; each message is one sentence for the user."""


class CampaignError(Exception):
    """Base class."""


class DefinitionRefused(CampaignError):
    """The definition cannot be read, or has faults."""


class CampaignNotFound(CampaignError):
    pass


class NotPossible(CampaignError):
    """The campaign's state does not allow the action."""


class ApprovalNeeded(CampaignError):
    """The campaign exceeds the limit above which another person must approve it."""
