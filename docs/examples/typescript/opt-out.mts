const URL_ = process.env.API_URL ?? "http://127.0.0.1:8080";
const KEY = process.env.API_KEY!;

async function post(path: string, body: object): Promise<any> {
  const headers = { "x-api-key": KEY, "content-type": "application/json" };
  const response = await fetch(URL_ + path, { method: "POST", headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
  return response.json();
}

const answer = await post("/v1/subscriptions/opt-out", { phone_number: "+33612345678" });
console.log(answer.outcome);

export {};
