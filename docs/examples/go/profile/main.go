package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"time"
)

func post(path string, body any) map[string]any {
	address := os.Getenv("API_URL")
	if address == "" {
		address = "http://127.0.0.1:8080"
	}
	text, _ := json.Marshal(body)
	request, _ := http.NewRequest("POST", address+path, bytes.NewReader(text))
	request.Header.Set("x-api-key", os.Getenv("API_KEY"))
	request.Header.Set("content-type", "application/json")
	response, err := (&http.Client{Timeout: 15 * time.Second}).Do(request)
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	answer, _ := io.ReadAll(response.Body)
	if response.StatusCode >= 300 {
		log.Fatalf("%d %s", response.StatusCode, answer)
	}
	var decoded map[string]any
	if err := json.Unmarshal(answer, &decoded); err != nil {
		log.Fatal(err)
	}
	return decoded
}

func main() {
	profile := post("/v1/profiles", map[string]any{
		"external_id":  "CUST-1042",
		"first_name":   "Ada",
		"phone_number": "+33612345678",
		"attributes":   map[string]string{"tier": "gold", "birthday": "1990-12-10"},
	})
	fmt.Println(profile["id"])
}
