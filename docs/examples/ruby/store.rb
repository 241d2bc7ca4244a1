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

store = post("/v1/stores", {
  external_id: "PARIS-01",
  name: "Rue de Rivoli",
  address: { address_line1: "12 rue de Rivoli", postal_code: "75004", locality: "Paris", country_code: "FR" }
})
puts store["id"]
