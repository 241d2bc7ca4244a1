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

$store = post('/v1/stores', [
    'external_id' => 'PARIS-01',
    'name' => 'Rue de Rivoli',
    'address' => [
        'address_line1' => '12 rue de Rivoli',
        'postal_code' => '75004',
        'locality' => 'Paris',
        'country_code' => 'FR',
    ],
]);
echo $store['id'], PHP_EOL;
