using System.Net.Http.Json;
using System.Text.Json.Nodes;

var url = Environment.GetEnvironmentVariable("API_URL") ?? "http://127.0.0.1:8080";
using var client = new HttpClient { BaseAddress = new Uri(url), Timeout = TimeSpan.FromSeconds(15) };
client.DefaultRequestHeaders.Add("x-api-key", Environment.GetEnvironmentVariable("API_KEY"));

var answer = await Post("/v1/subscriptions/opt-out", new { phone_number = "+33612345678" });
Console.WriteLine(answer["outcome"]);

async Task<JsonNode> Post(string path, object body)
{
    var response = await client.PostAsJsonAsync(path, body);
    var text = await response.Content.ReadAsStringAsync();
    if (!response.IsSuccessStatusCode) throw new HttpRequestException($"{(int)response.StatusCode} {text}");
    return JsonNode.Parse(text)!;
}
