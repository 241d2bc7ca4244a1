import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.regex.Pattern;

public class Feed {
    static final String URL = System.getenv().getOrDefault("API_URL", "http://127.0.0.1:8080");
    static final String KEY = System.getenv("API_KEY");
    // With a JSON library, read `next_cursor` and `has_more` from the page instead.
    static final Pattern NEXT = Pattern.compile("\"next_cursor\":\"([^\"]+)\"");

    /** Every profile that changed, page by page. Keep the last cursor: the next run goes on from there. */
    public static void main(String[] arguments) throws Exception {
        var client = HttpClient.newHttpClient();
        var query = "?updated_from=2020-01-01T00:00:00Z&limit=200";
        for (var cursor = ""; ; ) {
            var request = HttpRequest.newBuilder(URI.create(URL + "/v1/profiles" + query + cursor))
                .timeout(Duration.ofSeconds(15)).header("x-api-key", KEY).build();
            var response = client.send(request, BodyHandlers.ofString());
            if (response.statusCode() != 200) {
                throw new IllegalStateException(response.statusCode() + " " + response.body());
            }
            System.out.println(response.body());
            var next = NEXT.matcher(response.body());
            if (next.find()) {
                cursor = "&cursor=" + URLEncoder.encode(next.group(1), StandardCharsets.UTF_8);
            }
            if (!response.body().contains("\"has_more\":true")) {
                return;
            }
        }
    }
}
