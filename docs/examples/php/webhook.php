<?php
// Verify a delivery: body on standard input, its three headers and the endpoint's secret in the environment.
function isGenuine(string $secret, string $id, string $timestamp, string $signatures, string $body): bool
{
    if (abs(time() - (int) $timestamp) > 300) {
        return false;
    }
    $key = base64_decode(preg_replace('/^whsec_/', '', $secret));
    $expected = 'v1,' . base64_encode(hash_hmac('sha256', "$id.$timestamp.$body", $key, true));
    foreach (explode(' ', $signatures) as $signature) {
        if (hash_equals($expected, $signature)) {
            return true;
        }
    }
    return false;
}

$genuine = isGenuine(
    getenv('WEBHOOK_SECRET'),
    getenv('WEBHOOK_ID'),
    getenv('WEBHOOK_TIMESTAMP'),
    getenv('WEBHOOK_SIGNATURE'),
    stream_get_contents(STDIN),
);
echo $genuine ? 'genuine' : 'not from Regulars', PHP_EOL;
exit($genuine ? 0 : 1);
