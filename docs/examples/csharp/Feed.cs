using System.Text.Json.Nodes;

var url = Environment.GetEnvironmentVariable("API_URL") ?? "http://127.0.0.1:8080";
using var client = new HttpClient { BaseAddress = new Uri(url), Timeout = TimeSpan.FromSeconds(15) };
client.DefaultRequestHeaders.Add("x-api-key", Environment.GetEnvironmentVariable("API_KEY"));

// Every profile that changed, page by page. Keep the last cursor: the next run goes on from there.
var cursor = "";
while (true)
{
    var page = JsonNode.Parse(await client.GetStringAsync(
        "/v1/profiles?updated_from=2020-01-01T00:00:00Z&limit=200" + cursor))!;
    foreach (var profile in page["data"]!.AsArray())
    {
        Console.WriteLine($"{profile!["external_id"]} {profile["updated_at"]}");
    }
    cursor = "&cursor=" + Uri.EscapeDataString((string)page["next_cursor"]!);
    if (!(bool)page["has_more"]!) break;
}
