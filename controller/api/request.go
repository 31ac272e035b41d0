package api

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
)

const (
	// maxBody bounds the body of a request, in bytes.
	maxBody = 64 << 10
	// maxReload bounds the body of a reload, which may hold a configuration.
	maxReload = 4 << 20
	// maxText bounds every text that a caller sends, in bytes.
	maxText = 1024
	// maxQuoted is how many bytes of a caller's text an error repeats.
	maxQuoted = 80
)

// mistake is an error of the caller, status 400.
func mistake(message string) *RequestError {
	return &RequestError{Status: http.StatusBadRequest, Message: message}
}

// quote repeats a caller's text, cut.
func quote(text string) string {
	if len(text) > maxQuoted {
		text = strings.ToValidUTF8(text[:maxQuoted], "") + "..."
	}
	return strconv.Quote(text)
}

// body reads the request's JSON into doc. An empty body is an empty document.
// Unknown members, repeated members and text after the document are refused.
func body(w http.ResponseWriter, r *http.Request, doc any) error {
	return bodyOf(w, r, doc, maxBody)
}

// bodyOf is body for up to most bytes.
func bodyOf(w http.ResponseWriter, r *http.Request, doc any, most int64) error {
	if _, err := query(r); err != nil {
		return err
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return &RequestError{http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is larger than %d bytes", most)}
	}
	if err != nil {
		return mistake("the body could not be read: " + err.Error())
	}
	if len(data) == 0 {
		return nil
	}
	if err := json.Unmarshal(data, doc, json.RejectUnknownMembers(true)); err != nil {
		return mistake("the body is not the JSON document expected here: " + err.Error())
	}
	return nil
}

// values are the query parameters of a request. The readers below remember the
// first mistake, so that a caller asks for err once.
type values struct {
	url.Values
	err error
}

// query reads the parameters and refuses those that the path does not know.
func query(r *http.Request, known ...string) (*values, error) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, mistake("the query could not be read: " + err.Error())
	}
	for name, all := range q {
		switch {
		case !slices.Contains(known, name) && len(known) == 0:
			return nil, mistake(fmt.Sprintf("unknown parameter %s: %s takes none", quote(name), r.URL.Path))
		case !slices.Contains(known, name):
			return nil, mistake(fmt.Sprintf("unknown parameter %s: %s takes %s", quote(name), r.URL.Path, strings.Join(known, ", ")))
		case len(all) > 1:
			return nil, mistake(fmt.Sprintf("%s is given %d times", name, len(all)))
		case len(all[0]) > maxText || !utf8.ValidString(all[0]):
			return nil, mistake(fmt.Sprintf("%s is not a text of at most %d bytes", name, maxText))
		}
	}
	return &values{Values: q}, nil
}

func (q *values) fail(format string, args ...any) {
	if q.err == nil {
		q.err = mistake(fmt.Sprintf(format, args...))
	}
}

func (q *values) text(name string) string { return q.Get(name) }

func (q *values) required(name string) string {
	text := q.Get(name)
	if text == "" {
		q.fail("%s is missing", name)
	}
	return text
}

// choice is one of the given words; otherwise stands for an absent one.
func (q *values) choice(name, otherwise string, words ...string) string {
	text := q.Get(name)
	if text == "" {
		text = otherwise
	}
	if !slices.Contains(words, text) {
		q.fail("%s is %s: it must be %s", name, quote(text), strings.Join(words, ", "))
	}
	return text
}

// address is an IP address in its canonical form, or "" if it may be absent.
func (q *values) address(name string, needed bool) string {
	text := q.Get(name)
	if text == "" && !needed {
		return ""
	}
	addr, err := netip.ParseAddr(text)
	if err != nil || addr.Zone() != "" {
		q.fail("%s is %s: it must be an IP address", name, quote(text))
	}
	return addr.Unmap().String()
}

// port is a port number, or 0 if it may be absent.
func (q *values) port(name string, needed bool) uint16 {
	n := q.number(name, 16)
	if n == 0 && (needed || q.Get(name) != "") {
		q.fail("%s is %s: it must be a port from 1 to 65535", name, quote(q.Get(name)))
	}
	return uint16(n)
}

// vlan is a VLAN id, or 0 if it is absent.
func (q *values) vlan(name string) uint16 {
	n := q.number(name, 16)
	if n > 4094 || n == 0 && q.Get(name) != "" {
		q.fail("%s is %s: it must be a VLAN id from 1 to 4094", name, quote(q.Get(name)))
	}
	return uint16(n)
}

// number is 0 if it is absent.
func (q *values) number(name string, bits int) uint64 {
	text := q.Get(name)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseUint(text, 10, bits)
	if err != nil {
		q.fail("%s is %s: it must be a number from 0 to %d", name, quote(text), uint64(1)<<bits-1)
	}
	return n
}

func (q *values) flag(name string) bool { return q.choice(name, "0", "0", "1") == "1" }
