// Verify a delivery: body on standard input, its three headers and the endpoint's secret in the environment.
import { createHmac, timingSafeEqual } from "node:crypto";
import { readFileSync } from "node:fs";

function isGenuine(secret: string, headers: Record<string, string>, body: Buffer): boolean {
  if (Math.abs(Date.now() / 1000 - Number(headers["webhook-timestamp"])) > 300) return false;
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  const hmac = createHmac("sha256", key).update(`${headers["webhook-id"]}.${headers["webhook-timestamp"]}.`).update(body);
  const expected = Buffer.from(`v1,${hmac.digest("base64")}`);
  return headers["webhook-signature"].split(" ").some((one) => {
    const sent = Buffer.from(one);
    return sent.length === expected.length && timingSafeEqual(sent, expected);
  });
}

const genuine = isGenuine(process.env.WEBHOOK_SECRET!, {
  "webhook-id": process.env.WEBHOOK_ID!,
  "webhook-timestamp": process.env.WEBHOOK_TIMESTAMP!,
  "webhook-signature": process.env.WEBHOOK_SIGNATURE!,
}, readFileSync(0));
console.log(genuine ? "genuine" : "not from Regulars");
process.exit(genuine ? 0 : 1);
