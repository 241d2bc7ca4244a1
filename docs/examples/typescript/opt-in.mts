const URL_ = process.env.API_URL ?? "http://127.0.0.1:8080";
const KEY = process.env.API_KEY!;

async function post(path: string, body: object): Promise<any> {
  const headers = { "x-api-key": KEY, "content-type": "application/json" };
  const response = await fetch(URL_ + path, { method: "POST", headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
  return response.json();
}

const answer = await post("/v1/subscriptions/opt-in", {
  phone_number: "+33612345678",
  profile_id: "CUST-1042",
  store_id: "PARIS-01",
  consent_source: "POINT_OF_SALE",
  consented_at: new Date().toISOString(),
  consent_proof: {
    terms_url: "https://shop.example/terms",
    terms_version: "2026-01",
    source_text: "I want to hear from you by SMS.",
  },
});
console.log(answer.outcome, answer.subscription.status);

export {};
