using System.Net.Http.Json;
using System.Text.Json.Nodes;

var url = Environment.GetEnvironmentVariable("API_URL") ?? "http://127.0.0.1:8080";
using var client = new HttpClient { BaseAddress = new Uri(url), Timeout = TimeSpan.FromSeconds(15) };
client.DefaultRequestHeaders.Add("x-api-key", Environment.GetEnvironmentVariable("API_KEY"));

var profile = await Post("/v1/profiles", new
{
    external_id = "CUST-1042",
    first_name = "Ada",
    phone_number = "+33612345678",
    attributes = new { tier = "gold", birthday = "1990-12-10" },
});
Console.WriteLine(profile["id"]);

async Task<JsonNode> Post(string path, object body)
{
    var response = await client.PostAsJsonAsync(path, body);
    var text = await response.Content.ReadAsStringAsync();
    if (!response.IsSuccessStatusCode) throw new HttpRequestException($"{(int)response.StatusCode} {text}");
    return JsonNode.Parse(text)!;
}
