"""Headers of every page: nothing from elsewhere, nothing inline, no frames, and personal pages are not kept."""

from typing import Final

SECURITY_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=()",
}
# A page shows what only its reader may see: neither a proxy nor the Back button after signing out may show it again.
NOT_KEPT: Final = "no-store"
KEPT_FOR_EVER: Final = "public, max-age=31536000, immutable"
ONE_YEAR_HTTPS: Final = {"Strict-Transport-Security": "max-age=31536000"}
