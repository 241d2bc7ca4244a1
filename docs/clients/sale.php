<?php
// Store, profile, sale, opt-in and opt-out through the PHP client that openapi-generator generates.
use OpenAPI\Client\Api;
use OpenAPI\Client\Configuration;
use OpenAPI\Client\Model;

// Guzzle comes from Composer, or from the distribution (Debian: php-guzzlehttp-guzzle).
require is_file('vendor/autoload.php') ? 'vendor/autoload.php' : 'GuzzleHttp/autoload.php';
spl_autoload_register(function (string $class): void {
    $file = 'lib/' . strtr(substr($class, strlen('OpenAPI\\Client\\')), '\\', '/') . '.php';
    if (str_starts_with($class, 'OpenAPI\\Client\\') && is_file($file)) {
        require $file;
    }
});

$client = new GuzzleHttp\Client();
$configuration = (new Configuration())
    ->setHost(getenv('API_URL'))
    ->setApiKey('x-api-key', getenv('API_KEY'));
$line = new Model\LineItemIn([
    'quantity' => 1,
    'total_price_cents' => 1990,
    'product' => new Model\Product(['external_id' => 'SKU-1']),
]);
$sale = new Model\SaleIn([
    'external_id' => 'PARIS-01:000123',
    'type' => 'PURCHASE',
    'occurred_at' => new DateTime(),
    'store_id' => 'PARIS-01',
    'profile_id' => 'CUST-1042',
    'currency' => 'EUR',
    'total_amount_cents' => 1990,
    'total_discount_cents' => 0,
    'line_items' => [$line],
]);
$profile = new Model\ProfileIn([
    'external_id' => 'CUST-1042',
    'first_name' => 'Ada',
    'attributes' => ['tier' => 'gold'],
]);
$consent = new Model\OptInIn([
    'phone_number' => '+33612345678',
    'profile_id' => 'CUST-1042',
    'store_id' => 'PARIS-01',
    'consent_source' => 'POINT_OF_SALE',
    'consented_at' => new DateTime(),
]);
$withdrawal = new Model\OptOutIn(['phone_number' => '+33612345678']);
$store = new Model\StoreIn(['external_id' => 'PARIS-01', 'name' => 'Rue de Rivoli']);
$subscriptions = new Api\SubscriptionsApi($client, $configuration);
$responses = [
    (new Api\StoresApi($client, $configuration))->upsertStoreWithHttpInfo($store),
    (new Api\ProfilesApi($client, $configuration))->upsertProfileWithHttpInfo($profile),
    (new Api\SalesEventsApi($client, $configuration))->recordSalesEventWithHttpInfo($sale, 'PARIS-01:000123'),
    $subscriptions->optInWithHttpInfo($consent),
    $subscriptions->optOutWithHttpInfo($withdrawal),
];
echo implode(' ', array_map(fn ($response) => $response[1], $responses)), "\n";
