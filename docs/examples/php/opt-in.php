<?php
$url = getenv('API_URL') ?: 'http://127.0.0.1:8080';
$key = getenv('API_KEY');

function post(string $path, array $body): array
{
    global $url, $key;
    $context = stream_context_create(['http' => [
        'method' => 'POST',
        'header' => ["x-api-key: $key", 'content-type: application/json'],
        'content' => json_encode($body, JSON_THROW_ON_ERROR),
        'timeout' => 15,
        'ignore_errors' => true,
    ]]);
    $text = file_get_contents($url . $path, false, $context);
    if ($text === false || !preg_match('{ 2\d\d }', $http_response_header[0])) {
        throw new RuntimeException(($http_response_header[0] ?? 'no response') . ' ' . $text);
    }
    return json_decode($text, true, flags: JSON_THROW_ON_ERROR);
}

$answer = post('/v1/subscriptions/opt-in', [
    'phone_number' => '+33612345678',
    'profile_id' => 'CUST-1042',
    'store_id' => 'PARIS-01',
    'consent_source' => 'POINT_OF_SALE',
    'consented_at' => date(DATE_RFC3339),
    'consent_proof' => [
        'terms_url' => 'https://shop.example/terms',
        'terms_version' => '2026-01',
        'source_text' => 'I want to hear from you by SMS.',
    ],
]);
echo $answer['outcome'], ' ', $answer['subscription']['status'], PHP_EOL;
