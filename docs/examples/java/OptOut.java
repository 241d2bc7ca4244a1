import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;

public class OptOut {
    static final String URL = System.getenv().getOrDefault("API_URL", "http://127.0.0.1:8080");
    static final String KEY = System.getenv("API_KEY");

    static String post(String path, String body) throws Exception {
        var request = HttpRequest.newBuilder(URI.create(URL + path))
            .timeout(Duration.ofSeconds(15))
            .header("x-api-key", KEY)
            .header("content-type", "application/json")
            .POST(HttpRequest.BodyPublishers.ofString(body))
            .build();
        var response = HttpClient.newHttpClient().send(request, BodyHandlers.ofString());
        if (response.statusCode() >= 300) {
            throw new IllegalStateException(response.statusCode() + " " + response.body());
        }
        return response.body();
    }

    public static void main(String[] arguments) throws Exception {
        System.out.println(post("/v1/subscriptions/opt-out", """
            {"phone_number": "+33612345678"}
            """));
    }
}
