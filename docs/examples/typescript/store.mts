const URL_ = process.env.API_URL ?? "http://127.0.0.1:8080";
const KEY = process.env.API_KEY!;

async function post(path: string, body: object): Promise<any> {
  const headers = { "x-api-key": KEY, "content-type": "application/json" };
  const response = await fetch(URL_ + path, { method: "POST", headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
  return response.json();
}

const store = await post("/v1/stores", {
  external_id: "PARIS-01",
  name: "Rue de Rivoli",
  address: { address_line1: "12 rue de Rivoli", postal_code: "75004", locality: "Paris", country_code: "FR" },
});
console.log(store.id);

export {};
