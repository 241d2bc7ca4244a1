// Store, profile, sale, opt-in and opt-out with openapi-fetch and the types that openapi-typescript generates.
import createClient from "openapi-fetch";
import type { paths } from "./regulars";

declare const process: { env: Record<string, string> };

async function main() {
  const client = createClient<paths>({
    baseUrl: process.env.API_URL,
    headers: { "x-api-key": process.env.API_KEY },
  });
  const now = new Date().toISOString();
  const results = [
    await client.POST("/v1/stores", { body: { external_id: "PARIS-01", name: "Rue de Rivoli" } }),
    await client.POST("/v1/profiles", {
      body: { external_id: "CUST-1042", first_name: "Ada", attributes: { tier: "gold" } },
    }),
    await client.POST("/v1/sales-events", {
      params: { header: { "Idempotency-Key": "PARIS-01:000123" } },
      body: {
        external_id: "PARIS-01:000123",
        type: "PURCHASE",
        occurred_at: now,
        store_id: "PARIS-01",
        profile_id: "CUST-1042",
        currency: "EUR",
        total_amount_cents: 1990,
        total_discount_cents: 0,
        line_items: [{ quantity: 1, total_price_cents: 1990, product: { external_id: "SKU-1" } }],
      },
    }),
    await client.POST("/v1/subscriptions/opt-in", {
      body: {
        phone_number: "+33612345678",
        profile_id: "CUST-1042",
        store_id: "PARIS-01",
        consent_source: "POINT_OF_SALE",
        consented_at: now,
      },
    }),
    await client.POST("/v1/subscriptions/opt-out", { body: { phone_number: "+33612345678" } }),
  ];
  console.log(results.map((result) => result.response.status).join(" "));
}

main();
