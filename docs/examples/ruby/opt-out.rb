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

answer = post("/v1/subscriptions/opt-out", { phone_number: "+33612345678" })
puts answer["outcome"]
