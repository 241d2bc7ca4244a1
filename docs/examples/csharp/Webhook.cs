using System.Security.Cryptography;
using System.Text;

// Verify a delivery: body on standard input, its three headers and the endpoint's secret in the environment.
using var body = new MemoryStream();
await Console.OpenStandardInput().CopyToAsync(body);
string Variable(string name) => Environment.GetEnvironmentVariable(name)!;
var genuine = IsGenuine(Variable("WEBHOOK_SECRET"), Variable("WEBHOOK_ID"), Variable("WEBHOOK_TIMESTAMP"),
    Variable("WEBHOOK_SIGNATURE"), body.ToArray());
Console.WriteLine(genuine ? "genuine" : "not from Regulars");
return genuine ? 0 : 1;

static bool IsGenuine(string secret, string id, string timestamp, string signatures, byte[] body)
{
    if (Math.Abs(DateTimeOffset.UtcNow.ToUnixTimeSeconds() - long.Parse(timestamp)) > 300) return false;
    var key = Convert.FromBase64String(secret.StartsWith("whsec_") ? secret["whsec_".Length..] : secret);
    var signed = Encoding.UTF8.GetBytes($"{id}.{timestamp}.").Concat(body).ToArray();
    var expected = Encoding.UTF8.GetBytes("v1," + Convert.ToBase64String(HMACSHA256.HashData(key, signed)));
    return signatures.Split(' ').Any(one =>
        CryptographicOperations.FixedTimeEquals(Encoding.UTF8.GetBytes(one), expected));
}
