require "json"
require "net/http"

URL = ENV.fetch("API_URL", "http://127.0.0.1:8080")
KEY = ENV.fetch("API_KEY")

# Every profile that changed, page by page. Keep the last cursor: the next run goes on from there.
def each_changed_profile(query, &block)
  loop do
    response = Net::HTTP.get_response(URI("#{URL}/v1/profiles?#{URI.encode_www_form(query)}"), { "x-api-key" => KEY })
    raise "#{response.code} #{response.body}" unless response.is_a?(Net::HTTPSuccess)

    page = JSON.parse(response.body)
    page["data"].each(&block)
    query = query.merge(cursor: page["next_cursor"])
    break unless page["has_more"]
  end
end

each_changed_profile({ updated_from: "2020-01-01T00:00:00Z", limit: 200 }) do |profile|
  puts "#{profile["external_id"]} #{profile["updated_at"]}"
end
