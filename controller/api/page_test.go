package api_test

import (
	"regexp"
	"strings"
	"testing"
)

// TestPageIsSelfContained: everything that the page loads comes from this server.
func TestPageIsSelfContained(t *testing.T) {
	server, _ := newServer()
	page := request(server.ReadOnly(), "GET", "/", "")
	if page.Code != 200 || page.Header().Get("Content-Type") != "text/html; charset=utf-8" {
		t.Fatalf("status %d, %v", page.Code, page.Header())
	}
	if policy := page.Header().Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'self';") {
		t.Errorf("policy %q", policy)
	}
	loaded := regexp.MustCompile(`<(?:script|link) [^>]*(?:src|href)="([^"]*)"`).FindAllStringSubmatch(page.Body.String(), -1)
	if len(loaded) < 2 {
		t.Fatalf("the page loads %q", loaded)
	}
	text := page.Body.String()
	for _, l := range loaded {
		if strings.HasPrefix(l[1], "data:") {
			continue
		}
		w := request(server.ReadOnly(), "GET", "/"+l[1], "")
		if w.Code != 200 || w.Body.Len() == 0 {
			t.Errorf("%s: status %d, %d bytes", l[1], w.Code, w.Body.Len())
		}
		text += w.Body.String()
	}
	if regexp.MustCompile(`https?://`).MatchString(text) {
		t.Error("the page names another address")
	}
	// A name in a document must never become markup.
	if regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(`).MatchString(text) {
		t.Error("the page writes markup")
	}
}
