const URL_ = process.env.API_URL ?? "http://127.0.0.1:8080";
const KEY = process.env.API_KEY!;

/** One key for one ticket: however often it is sent, it is recorded once. */
async function postSafely(path: string, body: object, idempotencyKey: string): Promise<any> {
  const headers = { "x-api-key": KEY, "content-type": "application/json", "idempotency-key": idempotencyKey };
  const text = JSON.stringify(body); // Made once: a retry must have the same bytes.
  for (let attempt = 0; ; attempt++) {
    let waitS = 2 ** attempt;
    try {
      const signal = AbortSignal.timeout(15_000);
      const response = await fetch(URL_ + path, { method: "POST", headers, body: text, signal });
      if (response.ok) return response.json();
      const isPassing = [408, 409, 429].includes(response.status) || response.status >= 500;
      if (attempt === 5 || !isPassing) throw new Error(`refused: ${response.status} ${await response.text()}`);
      waitS = Number(response.headers.get("retry-after") ?? waitS);
    } catch (error) {
      // No response: it may have been recorded or not, and the retry finds out.
      if (attempt === 5 || String(error).includes("refused: ")) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, waitS * 1000));
  }
}

const answer = await postSafely("/v1/sales-events", {
  external_id: "PARIS-01:000123",
  type: "PURCHASE",
  occurred_at: new Date().toISOString(),
  store_id: "PARIS-01",
  profile_id: "CUST-1042",
  currency: "EUR",
  total_amount_cents: 1990,
  total_discount_cents: 0,
  line_items: [{ quantity: 1, total_price_cents: 1990, product: { external_id: "SKU-1", name: "Scarf" } }],
}, "PARIS-01:000123");
console.log(answer.sales_event.id, answer.automation.state);

export {};
