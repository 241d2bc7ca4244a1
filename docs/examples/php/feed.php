<?php
$url = getenv('API_URL') ?: 'http://127.0.0.1:8080';
$key = getenv('API_KEY');

/** Every profile that changed, page by page. Keep the last cursor: the next run goes on from there. */
function changedProfiles(array $query): Generator
{
    global $url, $key;
    $context = stream_context_create(['http' => ['header' => "x-api-key: $key", 'timeout' => 15]]);
    do {
        $text = file_get_contents("$url/v1/profiles?" . http_build_query($query), false, $context);
        if ($text === false) {
            throw new RuntimeException($http_response_header[0] ?? 'no response');
        }
        $page = json_decode($text, true, flags: JSON_THROW_ON_ERROR);
        yield from $page['data'];
        $query['cursor'] = $page['next_cursor'];
    } while ($page['has_more']);
}

foreach (changedProfiles(['updated_from' => '2020-01-01T00:00:00Z', 'limit' => 200]) as $profile) {
    echo $profile['external_id'], ' ', $profile['updated_at'], PHP_EOL;
}
