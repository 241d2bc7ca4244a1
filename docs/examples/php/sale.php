<?php
$url = getenv('API_URL') ?: 'http://127.0.0.1:8080';
$key = getenv('API_KEY');

/** One key for one ticket: however often it is sent, it is recorded once. */
function postSafely(string $path, array $body, string $idempotencyKey): array
{
    global $url, $key;
    $context = stream_context_create(['http' => [
        'method' => 'POST',
        'header' => ["x-api-key: $key", 'content-type: application/json', "idempotency-key: $idempotencyKey"],
        'content' => json_encode($body, JSON_THROW_ON_ERROR), // Made once: a retry must have the same bytes.
        'timeout' => 15,
        'ignore_errors' => true,
    ]]);
    for ($attempt = 0; ; $attempt++) {
        $text = @file_get_contents($url . $path, false, $context);
        // Without a response it may have been recorded or not, and the retry finds out.
        $status = $text === false ? 0 : (int) explode(' ', $http_response_header[0])[1];
        if ($status >= 200 && $status < 300) {
            return json_decode($text, true, flags: JSON_THROW_ON_ERROR);
        }
        $isPassing = $status === 0 || in_array($status, [408, 409, 429], true) || $status >= 500;
        if ($attempt === 5 || !$isPassing) {
            throw new RuntimeException("$status $text");
        }
        $wait = 2 ** $attempt;
        foreach ($status === 0 ? [] : $http_response_header as $header) {
            if (stripos($header, 'retry-after:') === 0) {
                $wait = (int) trim(substr($header, 12));
            }
        }
        sleep($wait);
    }
}

$answer = postSafely('/v1/sales-events', [
    'external_id' => 'PARIS-01:000123',
    'type' => 'PURCHASE',
    'occurred_at' => date(DATE_RFC3339),
    'store_id' => 'PARIS-01',
    'profile_id' => 'CUST-1042',
    'currency' => 'EUR',
    'total_amount_cents' => 1990,
    'total_discount_cents' => 0,
    'line_items' => [[
        'quantity' => 1,
        'total_price_cents' => 1990,
        'product' => ['external_id' => 'SKU-1', 'name' => 'Scarf'],
    ]],
], 'PARIS-01:000123');
echo $answer['sales_event']['id'], ' ', $answer['automation']['state'], PHP_EOL;
