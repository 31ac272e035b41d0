package api

import (
	"embed"
	"net/http"
)

// pageFiles is the status page. It reads the paths under /v1/ and nothing else.
//
//go:embed page
var pageFiles embed.FS

// servePage answers with one file of the page. The policy keeps the page to
// brlb's own address, whatever a name in a document may contain.
func servePage(name, contentType string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Content-Security-Policy", "default-src 'self'; img-src data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
		http.ServeFileFS(w, r, pageFiles, name)
	}
}
