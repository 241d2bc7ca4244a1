"""Store, profile, sale, opt-in and opt-out through the client that openapi-python-client generates."""

import os
from datetime import datetime, timezone

from regulars_api_client import AuthenticatedClient, models
from regulars_api_client.api.profiles import upsert_profile
from regulars_api_client.api.sales_events import record_sales_event
from regulars_api_client.api.stores import upsert_store
from regulars_api_client.api.subscriptions import opt_in, opt_out

client = AuthenticatedClient(
    base_url=os.environ["API_URL"], token=os.environ["API_KEY"], prefix="", auth_header_name="x-api-key"
)
attributes = models.ProfileInAttributesType0.from_dict({"tier": "gold"})
sale = models.SaleIn(
    external_id="PARIS-01:000123",
    type_=models.SaleInType.PURCHASE,
    occurred_at=datetime.now(timezone.utc),
    store_id="PARIS-01",
    profile_id="CUST-1042",
    currency=models.SaleInCurrency.EUR,
    total_amount_cents=1990,
    total_discount_cents=0,
    line_items=[models.LineItemIn(quantity=1, total_price_cents=1990, product=models.Product(external_id="SKU-1"))],
)
consent = models.OptInIn(
    phone_number="+33612345678",
    profile_id="CUST-1042",
    store_id="PARIS-01",
    consent_source=models.OptInInConsentSource.POINT_OF_SALE,
    consented_at=datetime.now(timezone.utc),
)
responses = [
    upsert_store.sync_detailed(client=client, body=models.StoreIn(external_id="PARIS-01", name="Rue de Rivoli")),
    upsert_profile.sync_detailed(
        client=client, body=models.ProfileIn(external_id="CUST-1042", first_name="Ada", attributes=attributes)
    ),
    record_sales_event.sync_detailed(client=client, body=sale, idempotency_key="PARIS-01:000123"),
    opt_in.sync_detailed(client=client, body=consent),
    opt_out.sync_detailed(client=client, body=models.OptOutIn(phone_number="+33612345678")),
]
print(*(int(response.status_code) for response in responses if response.parsed is not None))
