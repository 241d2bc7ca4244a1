// Store, profile, sale, opt-in and opt-out through the Go client that openapi-generator generates.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	openapi "github.com/GIT_USER_ID/GIT_REPO_ID"
)

func main() {
	configuration := openapi.NewConfiguration()
	configuration.Servers = openapi.ServerConfigurations{{URL: os.Getenv("API_URL")}}
	client := openapi.NewAPIClient(configuration)
	keys := map[string]openapi.APIKey{"ApiKey": {Key: os.Getenv("API_KEY")}}
	ctx := context.WithValue(context.Background(), openapi.ContextAPIKeys, keys)

	store := openapi.NewStoreIn("PARIS-01")
	store.SetName("Rue de Rivoli")
	_, response, err := client.StoresAPI.UpsertStore(ctx).StoreIn(*store).Execute()
	report(response, err)

	gold := "gold"
	profile := openapi.NewProfileIn("CUST-1042")
	profile.SetFirstName("Ada")
	profile.SetAttributes(map[string]*string{"tier": &gold})
	_, response, err = client.ProfilesAPI.UpsertProfile(ctx).ProfileIn(*profile).Execute()
	report(response, err)

	line := openapi.NewLineItemIn(1, 1990)
	product := openapi.NewProduct()
	product.SetExternalId("SKU-1")
	line.SetProduct(*product)
	sale := openapi.NewSaleIn(
		"PARIS-01:000123", "PURCHASE", time.Now(), "PARIS-01", "EUR", 1990, 0, []openapi.LineItemIn{*line})
	sale.SetProfileId("CUST-1042")
	_, response, err = client.SalesEventsAPI.RecordSalesEvent(ctx).
		SaleIn(*sale).IdempotencyKey("PARIS-01:000123").Execute()
	report(response, err)

	consent := openapi.NewOptInIn("+33612345678", "POINT_OF_SALE", time.Now())
	consent.SetProfileId("CUST-1042")
	consent.SetStoreId("PARIS-01")
	_, response, err = client.SubscriptionsAPI.OptIn(ctx).OptInIn(*consent).Execute()
	report(response, err)

	withdrawal := openapi.NewOptOutIn()
	withdrawal.SetPhoneNumber("+33612345678")
	_, response, err = client.SubscriptionsAPI.OptOut(ctx).OptOutIn(*withdrawal).Execute()
	report(response, err)
}

func report(response *http.Response, err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Print(response.StatusCode, " ")
}
