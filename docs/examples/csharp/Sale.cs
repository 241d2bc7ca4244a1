using System.Net.Http.Headers;
using System.Text.Json;

var url = Environment.GetEnvironmentVariable("API_URL") ?? "http://127.0.0.1:8080";
using var client = new HttpClient { BaseAddress = new Uri(url), Timeout = TimeSpan.FromSeconds(15) };
client.DefaultRequestHeaders.Add("x-api-key", Environment.GetEnvironmentVariable("API_KEY"));

var answer = await PostSafely("/v1/sales-events", new
{
    external_id = "PARIS-01:000123",
    type = "PURCHASE",
    occurred_at = DateTimeOffset.UtcNow.ToString("O"),
    store_id = "PARIS-01",
    profile_id = "CUST-1042",
    currency = "EUR",
    total_amount_cents = 1990,
    total_discount_cents = 0,
    line_items = new[]
    {
        new { quantity = 1, total_price_cents = 1990, product = new { external_id = "SKU-1", name = "Scarf" } },
    },
}, "PARIS-01:000123");
Console.WriteLine(answer);

// One key for one ticket: however often it is sent, it is recorded once.
async Task<string> PostSafely(string path, object body, string idempotencyKey)
{
    var bytes = JsonSerializer.SerializeToUtf8Bytes(body); // Made once: a retry must have the same bytes.
    for (var attempt = 0; ; attempt++)
    {
        var wait = TimeSpan.FromSeconds(1 << attempt);
        try
        {
            var content = new ByteArrayContent(bytes);
            content.Headers.ContentType = new MediaTypeHeaderValue("application/json");
            using var request = new HttpRequestMessage(HttpMethod.Post, path) { Content = content };
            request.Headers.Add("idempotency-key", idempotencyKey);
            using var response = await client.SendAsync(request);
            var text = await response.Content.ReadAsStringAsync();
            if (response.IsSuccessStatusCode) return text;
            var status = (int)response.StatusCode;
            var isPassing = status is 408 or 409 or 429 or >= 500;
            if (attempt == 5 || !isPassing) throw new InvalidOperationException($"{status} {text}");
            wait = response.Headers.RetryAfter?.Delta ?? wait;
        }
        catch (Exception error) when (attempt < 5 && error is HttpRequestException or TaskCanceledException)
        {
            // No response: it may have been recorded or not, and the retry finds out.
        }
        await Task.Delay(wait);
    }
}
