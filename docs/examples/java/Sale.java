import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.Set;

public class Sale {
    static final String URL = System.getenv().getOrDefault("API_URL", "http://127.0.0.1:8080");
    static final String KEY = System.getenv("API_KEY");
    static final Set<Integer> PASSING = Set.of(408, 409, 429);

    /** One key for one ticket: however often it is sent, it is recorded once. */
    static String postSafely(String path, String body, String idempotencyKey) throws Exception {
        var request = HttpRequest.newBuilder(URI.create(URL + path))
            .timeout(Duration.ofSeconds(15))
            .header("x-api-key", KEY)
            .header("content-type", "application/json")
            .header("idempotency-key", idempotencyKey)
            .POST(HttpRequest.BodyPublishers.ofString(body)) // The same bytes for every retry.
            .build();
        var client = HttpClient.newHttpClient();
        for (int attempt = 0; ; attempt++) {
            long waitS = 1L << attempt;
            try {
                var response = client.send(request, BodyHandlers.ofString());
                int status = response.statusCode();
                if (status < 300) {
                    return response.body();
                }
                if (attempt == 5 || !(PASSING.contains(status) || status >= 500)) {
                    throw new IllegalStateException(status + " " + response.body());
                }
                waitS = response.headers().firstValueAsLong("retry-after").orElse(waitS);
            } catch (IOException noResponse) {
                // It may have been recorded or not, and the retry finds out.
                if (attempt == 5) {
                    throw noResponse;
                }
            }
            Thread.sleep(waitS * 1000);
        }
    }

    public static void main(String[] arguments) throws Exception {
        System.out.println(postSafely("/v1/sales-events", """
            {"external_id": "PARIS-01:000123", "type": "PURCHASE", "occurred_at": "%s", "store_id": "PARIS-01",
             "profile_id": "CUST-1042", "currency": "EUR", "total_amount_cents": 1990, "total_discount_cents": 0,
             "line_items": [{"quantity": 1, "total_price_cents": 1990,
                             "product": {"external_id": "SKU-1", "name": "Scarf"}}]}
            """.formatted(OffsetDateTime.now()), "PARIS-01:000123"));
    }
}
