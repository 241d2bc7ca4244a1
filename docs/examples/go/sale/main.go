package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"time"
)

// postSafely sends one ticket under one key: however often it is sent, it is recorded once.
func postSafely(path string, body any, idempotencyKey string) string {
	address := os.Getenv("API_URL")
	if address == "" {
		address = "http://127.0.0.1:8080"
	}
	text, _ := json.Marshal(body) // Made once: a retry must have the same bytes.
	client := &http.Client{Timeout: 15 * time.Second}
	for attempt := 0; ; attempt++ {
		request, _ := http.NewRequest("POST", address+path, bytes.NewReader(text))
		request.Header.Set("x-api-key", os.Getenv("API_KEY"))
		request.Header.Set("content-type", "application/json")
		request.Header.Set("idempotency-key", idempotencyKey)
		wait := time.Second << attempt
		response, err := client.Do(request)
		if err == nil {
			answer, _ := io.ReadAll(response.Body)
			response.Body.Close()
			status := response.StatusCode
			if status < 300 {
				return string(answer)
			}
			isPassing := status == 408 || status == 409 || status == 429 || status >= 500
			if attempt == 5 || !isPassing {
				log.Fatalf("%d %s", status, answer)
			}
			if seconds, err := strconv.Atoi(response.Header.Get("retry-after")); err == nil {
				wait = time.Duration(seconds) * time.Second
			}
		} else if attempt == 5 { // No response: it may have been recorded or not, and the retry finds out.
			log.Fatal(err)
		}
		time.Sleep(wait)
	}
}

func main() {
	answer := postSafely("/v1/sales-events", map[string]any{
		"external_id":          "PARIS-01:000123",
		"type":                 "PURCHASE",
		"occurred_at":          time.Now().Format(time.RFC3339Nano),
		"store_id":             "PARIS-01",
		"profile_id":           "CUST-1042",
		"currency":             "EUR",
		"total_amount_cents":   1990,
		"total_discount_cents": 0,
		"line_items": []map[string]any{{
			"quantity": 1, "total_price_cents": 1990,
			"product": map[string]any{"external_id": "SKU-1", "name": "Scarf"},
		}},
	}, "PARIS-01:000123")
	fmt.Println(answer)
}
