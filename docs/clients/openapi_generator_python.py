"""Store, profile, sale, opt-in and opt-out through the Python client that openapi-generator generates."""

import os
from datetime import datetime, timezone

import openapi_client as regulars

configuration = regulars.Configuration(
    host=os.environ["API_URL"], api_key={"ApiKey": os.environ["API_KEY"]}
)
client = regulars.ApiClient(configuration)
sale = regulars.SaleIn(
    external_id="PARIS-01:000123",
    type="PURCHASE",
    occurred_at=datetime.now(timezone.utc),
    store_id="PARIS-01",
    profile_id="CUST-1042",
    currency="EUR",
    total_amount_cents=1990,
    total_discount_cents=0,
    line_items=[
        regulars.LineItemIn(
            quantity=1, total_price_cents=1990, product=regulars.Product(external_id="SKU-1")
        )
    ],
)
consent = regulars.OptInIn(
    phone_number="+33612345678",
    profile_id="CUST-1042",
    store_id="PARIS-01",
    consent_source="POINT_OF_SALE",
    consented_at=datetime.now(timezone.utc),
)
profile = regulars.ProfileIn(external_id="CUST-1042", first_name="Ada", attributes={"tier": "gold"})
subscriptions = regulars.SubscriptionsApi(client)
responses = [
    regulars.StoresApi(client).upsert_store_with_http_info(
        regulars.StoreIn(external_id="PARIS-01", name="Rue de Rivoli")
    ),
    regulars.ProfilesApi(client).upsert_profile_with_http_info(profile),
    regulars.SalesEventsApi(client).record_sales_event_with_http_info(sale, idempotency_key="PARIS-01:000123"),
    subscriptions.opt_in_with_http_info(consent),
    subscriptions.opt_out_with_http_info(regulars.OptOutIn(phone_number="+33612345678")),
]
print(*(response.status_code for response in responses if response.data is not None))
