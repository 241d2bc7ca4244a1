package main

import (
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/url"
	"os"
	"time"
)

type page struct {
	Data []struct {
		ExternalID string `json:"external_id"`
		UpdatedAt  string `json:"updated_at"`
	} `json:"data"`
	NextCursor string `json:"next_cursor"`
	HasMore    bool   `json:"has_more"`
}

func get(path string) (found page) {
	address := os.Getenv("API_URL")
	if address == "" {
		address = "http://127.0.0.1:8080"
	}
	request, _ := http.NewRequest("GET", address+path, nil)
	request.Header.Set("x-api-key", os.Getenv("API_KEY"))
	response, err := (&http.Client{Timeout: 15 * time.Second}).Do(request)
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != 200 {
		log.Fatal(response.Status)
	}
	if err := json.NewDecoder(response.Body).Decode(&found); err != nil {
		log.Fatal(err)
	}
	return found
}

// It prints every profile that changed, page by page. Keep the last cursor: the next run goes on from there.
func main() {
	query := url.Values{"updated_from": {"2020-01-01T00:00:00Z"}, "limit": {"200"}}
	for {
		page := get("/v1/profiles?" + query.Encode())
		for _, profile := range page.Data {
			fmt.Println(profile.ExternalID, profile.UpdatedAt)
		}
		query.Set("cursor", page.NextCursor)
		if !page.HasMore {
			return
		}
	}
}
