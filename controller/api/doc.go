// Package api is what people and machines see of a running brlb: the JSON
// documents, the HTTP server that hands them out, and the client that the
// commands use.
//
// It owns the shape of the documents and the paths under /v1/. It holds no
// state of its own: everything comes from a Backend.
package api
