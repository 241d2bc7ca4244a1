using System.Net.Http.Json;
using System.Text.Json.Nodes;

var url = Environment.GetEnvironmentVariable("API_URL") ?? "http://127.0.0.1:8080";
using var client = new HttpClient { BaseAddress = new Uri(url), Timeout = TimeSpan.FromSeconds(15) };
client.DefaultRequestHeaders.Add("x-api-key", Environment.GetEnvironmentVariable("API_KEY"));

var answer = await Post("/v1/subscriptions/opt-in", new
{
    phone_number = "+33612345678",
    profile_id = "CUST-1042",
    store_id = "PARIS-01",
    consent_source = "POINT_OF_SALE",
    consented_at = DateTimeOffset.UtcNow.ToString("O"),
    consent_proof = new
    {
        terms_url = "https://shop.example/terms",
        terms_version = "2026-01",
        source_text = "I want to hear from you by SMS.",
    },
});
Console.WriteLine(answer["outcome"]);

async Task<JsonNode> Post(string path, object body)
{
    var response = await client.PostAsJsonAsync(path, body);
    var text = await response.Content.ReadAsStringAsync();
    if (!response.IsSuccessStatusCode) throw new HttpRequestException($"{(int)response.StatusCode} {text}");
    return JsonNode.Parse(text)!;
}
