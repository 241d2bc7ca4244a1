import java.security.MessageDigest;
import java.time.Instant;
import java.util.Base64;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

public class Webhook {
    static boolean isGenuine(String secret, String id, String timestamp, String signatures, byte[] body) throws Exception {
        if (Math.abs(Instant.now().getEpochSecond() - Long.parseLong(timestamp)) > 300) {
            return false;
        }
        var mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(Base64.getDecoder().decode(secret.replaceFirst("^whsec_", "")), "HmacSHA256"));
        mac.update((id + "." + timestamp + ".").getBytes());
        var expected = "v1," + Base64.getEncoder().encodeToString(mac.doFinal(body));
        for (var one : signatures.split(" ")) {
            if (MessageDigest.isEqual(one.getBytes(), expected.getBytes())) {
                return true;
            }
        }
        return false;
    }

    /** Body on standard input, its three headers and the endpoint's secret in the environment. */
    public static void main(String[] arguments) throws Exception {
        var genuine = isGenuine(System.getenv("WEBHOOK_SECRET"), System.getenv("WEBHOOK_ID"),
            System.getenv("WEBHOOK_TIMESTAMP"), System.getenv("WEBHOOK_SIGNATURE"), System.in.readAllBytes());
        System.out.println(genuine ? "genuine" : "not from Regulars");
        System.exit(genuine ? 0 : 1);
    }
}
