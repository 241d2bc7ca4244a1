# Verify a delivery: body on standard input, its three headers and the endpoint's secret in the environment.
require "openssl"

def genuine?(secret, id, timestamp, signatures, body)
  return false if (Time.now.to_i - timestamp.to_i).abs > 300

  key = secret.delete_prefix("whsec_").unpack1("m")
  expected = "v1," + [OpenSSL::HMAC.digest("SHA256", key, "#{id}.#{timestamp}.#{body}")].pack("m0")
  signatures.split.any? { |one| OpenSSL.secure_compare(one, expected) }
end

genuine = genuine?(
  ENV.fetch("WEBHOOK_SECRET"),
  ENV.fetch("WEBHOOK_ID"),
  ENV.fetch("WEBHOOK_TIMESTAMP"),
  ENV.fetch("WEBHOOK_SIGNATURE"),
  $stdin.binmode.read
)
puts genuine ? "genuine" : "not from Regulars"
exit genuine
