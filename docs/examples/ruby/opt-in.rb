require "json"
require "net/http"
require "time"

URL = ENV.fetch("API_URL", "http://127.0.0.1:8080")
KEY = ENV.fetch("API_KEY")

def post(path, body)
  headers = { "x-api-key" => KEY, "content-type" => "application/json" }
  response = Net::HTTP.post(URI(URL + path), JSON.generate(body), headers)
  raise "#{response.code} #{response.body}" unless response.is_a?(Net::HTTPSuccess)

  JSON.parse(response.body)
end

answer = post("/v1/subscriptions/opt-in", {
  phone_number: "+33612345678",
  profile_id: "CUST-1042",
  store_id: "PARIS-01",
  consent_source: "POINT_OF_SALE",
  consented_at: Time.now.utc.iso8601(3),
  consent_proof: {
    terms_url: "https://shop.example/terms",
    terms_version: "2026-01",
    source_text: "I want to hear from you by SMS."
  }
})
puts answer["outcome"], answer["subscription"]["status"]
