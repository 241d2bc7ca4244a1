import json
import os
import urllib.parse
import urllib.request

URL = os.environ.get("API_URL", "http://127.0.0.1:8080")
KEY = os.environ["API_KEY"]


def changed_profiles(query):
    """Every profile that changed, page by page. Keep the last cursor: the next run goes on from there."""
    while True:
        address = f"{URL}/v1/profiles?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(urllib.request.Request(address, headers={"x-api-key": KEY}), timeout=15) as response:
            page = json.load(response)
        yield from page["data"]
        query = {**query, "cursor": page["next_cursor"]}
        if not page["has_more"]:
            return


for profile in changed_profiles({"updated_from": "2020-01-01T00:00:00Z", "limit": 200}):
    print(profile["external_id"], profile["updated_at"])
