// Store, profile, sale, opt-in and opt-out through the client that openapi-generator's typescript-fetch generates.
import { Configuration, ProfilesApi, SalesEventsApi, StoresApi, SubscriptionsApi } from "./index";

declare const process: { env: Record<string, string> };

async function main() {
  const client = new Configuration({ basePath: process.env.API_URL, apiKey: process.env.API_KEY });
  const subscriptions = new SubscriptionsApi(client);
  const statuses: number[] = [];
  const read = async (call: Promise<{ raw: Response; value(): Promise<unknown> }>) => {
    const response = await call;
    await response.value();
    statuses.push(response.raw.status);
  };
  await read(new StoresApi(client).upsertStoreRaw({ storeIn: { externalId: "PARIS-01", name: "Rue de Rivoli" } }));
  await read(new ProfilesApi(client).upsertProfileRaw({
    profileIn: { externalId: "CUST-1042", firstName: "Ada", attributes: { tier: "gold" } },
  }));
  await read(new SalesEventsApi(client).recordSalesEventRaw({
    idempotencyKey: "PARIS-01:000123",
    saleIn: {
      externalId: "PARIS-01:000123",
      type: "PURCHASE",
      occurredAt: new Date(),
      storeId: "PARIS-01",
      profileId: "CUST-1042",
      currency: "EUR",
      totalAmountCents: 1990,
      totalDiscountCents: 0,
      lineItems: [{ quantity: 1, totalPriceCents: 1990, product: { externalId: "SKU-1" } }],
    },
  }));
  await read(subscriptions.optInRaw({
    optInIn: {
      phoneNumber: "+33612345678",
      profileId: "CUST-1042",
      storeId: "PARIS-01",
      consentSource: "POINT_OF_SALE",
      consentedAt: new Date(),
    },
  }));
  await read(subscriptions.optOutRaw({ optOutIn: { phoneNumber: "+33612345678" } }));
  console.log(statuses.join(" "));
}

main();
