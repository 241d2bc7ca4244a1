"""Load, lock and save the text settings of an organization, and encrypt the token of its provider account."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import msgspec

from regulars.kit import log
from regulars.kit.db import Tx
from regulars.kit.vault import AnyVault, VaultError
from regulars.organizations.secret import open_secret
from regulars.texts.errors import SettingRefused
from regulars.texts.queries.settings import lock_settings, lock_settings_shared
from regulars.texts.settings.model import InboundProgress, OptOutNotice, ProviderName, SmsSettings

# How often the provider's list of replies is read, in case a callback failed.
POLL_EVERY: Final = timedelta(minutes=5)
_log = log.get(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Texting:
    """The current text settings of an organization. `secret` is the key of its hashes, such as those of phone
    numbers."""

    organization_id: UUID
    organization_name: str
    secret: bytes = field(repr=False)
    provider: ProviderName = "simulator"
    settings: SmsSettings = field(default_factory=SmsSettings)
    encrypted_token: bytes | None = field(default=None, repr=False)
    held_since: datetime | None = None
    held_reason: str | None = None
    inbound_progress: InboundProgress = field(default_factory=InboundProgress)
    # Whether the organization has the invented customers of the demo; then it always uses the simulator.
    is_demo: bool = False

    @property
    def is_on_hold(self) -> bool:
        return self.held_since is not None

    @property
    def brand(self) -> str:
        return self.settings.brand or self.organization_name

    def is_sender_refused(self, country: str | None) -> bool:
        """Whether the country refuses the sender; never with the simulator."""
        return country is not None and self.provider != "simulator" and self.settings.is_sender_refused(country)

    def opt_out_notice_of(self, country: str | None) -> OptOutNotice | None:
        return None if country is None else self.settings.opt_out_notice_of(country, self.provider)


async def load_texting(tx: Tx, organization_id: UUID) -> Texting | None:
    """The text settings; None if the organization does not exist any more. Without a stored row, the defaults apply."""
    rows = await tx.fetch(
        """
        SELECT organizations.name, organizations.secret, organizations.sealed_secret, organizations.is_demo,
               sms_settings.provider, sms_settings.settings::text, sms_settings.credentials, sms_settings.held_since,
               sms_settings.held_reason, sms_settings.inbound::text
        FROM organizations
        LEFT JOIN sms_settings ON sms_settings.organization_id = organizations.id
        WHERE organizations.id = %s
        """,
        (organization_id,),
    )
    if not rows:
        return None
    name, secret, sealed_secret, is_demo, provider, settings, token, held_since, held_reason, inbound = rows[0]
    return Texting(
        organization_id=organization_id,
        organization_name=name,
        secret=open_secret(organization_id, secret, sealed_secret),
        provider="simulator" if is_demo or provider is None else provider,
        settings=msgspec.json.decode(settings or "{}", type=SmsSettings),
        encrypted_token=token,
        held_since=held_since,
        held_reason=held_reason,
        inbound_progress=msgspec.json.decode(inbound or "{}", type=InboundProgress),
        is_demo=is_demo,
    )


async def lock_texting(tx: Tx, organization_id: UUID) -> Texting | None:
    """Load and lock the settings, so that no other transaction changes them or sets a hold."""
    await lock_settings(tx, organization_id)
    return await load_texting(tx, organization_id)


async def load_texting_shared(tx: Tx, organization_id: UUID) -> Texting | None:
    """Load the settings in a transaction that claims texts for sending. Until this transaction ends, no other
    transaction changes the settings; so every claim after the commit of a hold sees the hold."""
    await lock_settings_shared(tx, organization_id)
    return await load_texting(tx, organization_id)


async def save_texting(tx: Tx, organization_id: UUID, texting: Texting) -> None:
    await tx.execute(
        """
        INSERT INTO sms_settings
            (organization_id, provider, settings, credentials, held_since, held_reason, due_at, updated_at)
        VALUES (%s, %s, %s::json, %s, %s, %s, %s, %s)
        ON CONFLICT (organization_id) DO UPDATE
        SET provider = EXCLUDED.provider, settings = EXCLUDED.settings, credentials = EXCLUDED.credentials,
            held_since = EXCLUDED.held_since, held_reason = EXCLUDED.held_reason, due_at = EXCLUDED.due_at,
            updated_at = EXCLUDED.updated_at
        """,
        (
            organization_id,
            texting.provider,
            msgspec.json.encode(texting.settings).decode(),
            texting.encrypted_token,
            texting.held_since,
            texting.held_reason,
            tx.now + POLL_EVERY if texting.provider == "twilio" else None,
            tx.now,
        ),
    )


async def change_provider(
    tx: Tx,
    organization_id: UUID,
    texting: Texting,
    *,
    provider: ProviderName,
    settings: SmsSettings,
    token: bytes | None,
) -> Texting:
    """Change the provider; `token` is the encrypted token of its account. If the provider or its account changes, texts
    are on hold until a user releases them."""
    if texting.is_demo and provider != "simulator":
        raise SettingRefused("This organization has the demo's made-up customers, so it only simulates texts.")
    changed = replace(texting, provider=provider, settings=settings, encrypted_token=token)
    if settings.twilio != texting.settings.twilio:
        for country in settings.notices:
            if country not in settings.senders and (fault := settings.why_not_sent(country)) is not None:
                raise SettingRefused(f"{fault} Set another sender for {country} first, or remove its notice.")
    is_other_account = provider == "twilio" and settings.twilio != texting.settings.twilio
    if provider != texting.provider or is_other_account:
        changed = replace(changed, held_since=tx.now, held_reason="The provider was changed.")
    await save_texting(tx, organization_id, changed)
    return changed


async def hold_for_account(tx: Tx, organization_id: UUID, used_texting: Texting, *, reason: str) -> None:
    """Hold the texts because the provider refused the used account, unless another account was set meanwhile."""
    texting = await lock_texting(tx, organization_id)
    if texting is None or texting.is_on_hold:
        return
    if (texting.provider, texting.settings.twilio, texting.encrypted_token) == (
        used_texting.provider,
        used_texting.settings.twilio,
        used_texting.encrypted_token,
    ):
        await save_texting(tx, organization_id, replace(texting, held_since=tx.now, held_reason=reason))
        _log.warning("texts.held", organization_id=str(organization_id), reason=reason)


async def save_inbound_progress(tx: Tx, organization_id: UUID, progress: InboundProgress, *, due_at: datetime) -> None:
    """Store how far the provider's list of replies was read, and when it is read again."""
    await tx.execute(
        "UPDATE sms_settings SET inbound = %s::json, due_at = %s WHERE organization_id = %s AND provider = 'twilio'",
        (msgspec.json.encode(progress).decode(), due_at, organization_id),
    )


def seal_token(vault: AnyVault, organization_id: UUID, token: str) -> bytes:
    return vault.seal(token.encode(), context=_context(organization_id))


def open_token(vault: AnyVault, texting: Texting) -> str:
    if texting.encrypted_token is None:
        raise VaultError("The provider's account has no token.")
    return vault.open(texting.encrypted_token, context=_context(texting.organization_id)).decode()


async def reseal(tx: Tx, old: AnyVault, new: AnyVault) -> int:
    """Encrypt the tokens of all organizations with another key; the tokens themselves do not change."""
    rows = await tx.fetch("SELECT organization_id, credentials FROM sms_settings WHERE credentials IS NOT NULL")
    for organization_id, encrypted in rows:
        token = old.open(bytes(encrypted), context=_context(organization_id)).decode()
        await tx.execute(
            "UPDATE sms_settings SET credentials = %s WHERE organization_id = %s",
            (seal_token(new, organization_id, token), organization_id),
        )
    return len(rows)


def _context(organization_id: UUID) -> str:
    """The encryption context: a token that is copied to another organization cannot be decrypted there."""
    return f"sms {organization_id}"
