const URL_ = process.env.API_URL ?? "http://127.0.0.1:8080";
const KEY = process.env.API_KEY!;

/** Every profile that changed, page by page. Keep the last cursor: the next run goes on from there. */
async function* changedProfiles(query: Record<string, string>) {
  for (;;) {
    const response = await fetch(`${URL_}/v1/profiles?${new URLSearchParams(query)}`, { headers: { "x-api-key": KEY } });
    if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
    const page: any = await response.json();
    yield* page.data;
    query = { ...query, cursor: page.next_cursor };
    if (!page.has_more) return;
  }
}

for await (const profile of changedProfiles({ updated_from: "2020-01-01T00:00:00Z", limit: "200" })) {
  console.log(profile.external_id, profile.updated_at);
}

export {};
