require "json"
require "net/http"
require "time"

URL = ENV.fetch("API_URL", "http://127.0.0.1:8080")
KEY = ENV.fetch("API_KEY")

# One key for one ticket: however often it is sent, it is recorded once.
def post_safely(path, body, idempotency_key)
  headers = { "x-api-key" => KEY, "content-type" => "application/json", "idempotency-key" => idempotency_key }
  text = JSON.generate(body) # Made once: a retry must have the same bytes.
  6.times do |attempt|
    wait = 2**attempt
    begin
      response = Net::HTTP.post(URI(URL + path), text, headers)
      return JSON.parse(response.body) if response.is_a?(Net::HTTPSuccess)

      status = response.code.to_i
      passing = [408, 409, 429].include?(status) || status >= 500
      raise ArgumentError, "#{status} #{response.body}" if attempt == 5 || !passing

      wait = response["retry-after"].to_f if response["retry-after"]
    rescue IOError, SystemCallError, Timeout::Error
      # No response: it may have been recorded or not, and the retry finds out.
      raise if attempt == 5
    end
    sleep wait
  end
end

answer = post_safely("/v1/sales-events", {
  external_id: "PARIS-01:000123",
  type: "PURCHASE",
  occurred_at: Time.now.utc.iso8601(3),
  store_id: "PARIS-01",
  profile_id: "CUST-1042",
  currency: "EUR",
  total_amount_cents: 1990,
  total_discount_cents: 0,
  line_items: [{ quantity: 1, total_price_cents: 1990, product: { external_id: "SKU-1", name: "Scarf" } }]
}, "PARIS-01:000123")
puts answer["sales_event"]["id"], answer["automation"]["state"]
