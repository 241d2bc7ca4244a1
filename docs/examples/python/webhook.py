"""Verify a delivery: body on standard input, its three headers and the endpoint's secret in the environment."""

import base64
import hashlib
import hmac
import os
import sys
import time


def is_genuine(secret, headers, body):
    if abs(time.time() - int(headers["webhook-timestamp"])) > 300:
        return False
    signed = b"%s.%s.%s" % (headers["webhook-id"].encode(), headers["webhook-timestamp"].encode(), body)
    key = base64.b64decode(secret.removeprefix("whsec_"))
    expected = "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
    return any(hmac.compare_digest(expected, one) for one in headers["webhook-signature"].split())


names = ("webhook-id", "webhook-timestamp", "webhook-signature")
headers = {name: os.environ[name.replace("-", "_").upper()] for name in names}
genuine = is_genuine(os.environ["WEBHOOK_SECRET"], headers, sys.stdin.buffer.read())
print("genuine" if genuine else "not from Regulars")
sys.exit(not genuine)
