require "json"
require "net/http"

URL = ENV.fetch("API_URL", "http://127.0.0.1:8080")
KEY = ENV.fetch("API_KEY")

def post(path, body)
  headers = { "x-api-key" => KEY, "content-type" => "application/json" }
  response = Net::HTTP.post(URI(URL + path), JSON.generate(body), headers)
  raise "#{response.code} #{response.body}" unless response.is_a?(Net::HTTPSuccess)

  JSON.parse(response.body)
end

profile = post("/v1/profiles", {
  external_id: "CUST-1042",
  first_name: "Ada",
  phone_number: "+33612345678",
  attributes: { tier: "gold", birthday: "1990-12-10" }
})
puts profile["id"]
