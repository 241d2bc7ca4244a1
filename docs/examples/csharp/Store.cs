using System.Net.Http.Json;
using System.Text.Json.Nodes;

var url = Environment.GetEnvironmentVariable("API_URL") ?? "http://127.0.0.1:8080";
using var client = new HttpClient { BaseAddress = new Uri(url), Timeout = TimeSpan.FromSeconds(15) };
client.DefaultRequestHeaders.Add("x-api-key", Environment.GetEnvironmentVariable("API_KEY"));

var store = await Post("/v1/stores", new
{
    external_id = "PARIS-01",
    name = "Rue de Rivoli",
    address = new { address_line1 = "12 rue de Rivoli", postal_code = "75004", locality = "Paris", country_code = "FR" },
});
Console.WriteLine(store["id"]);

async Task<JsonNode> Post(string path, object body)
{
    var response = await client.PostAsJsonAsync(path, body);
    var text = await response.Content.ReadAsStringAsync();
    if (!response.IsSuccessStatusCode) throw new HttpRequestException($"{(int)response.StatusCode} {text}");
    return JsonNode.Parse(text)!;
}
