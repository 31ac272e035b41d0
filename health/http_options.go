package health

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

// HTTPOptions say what an HTTP check asks and what it expects.
type HTTPOptions struct {
	Method string // default GET
	Path   string // with a query if there is one; default "/"
	Host   string // the Host header; default the target's address and port
	// Headers are further request headers, one "Name: value" a line.
	Headers string
	// Status lists the codes that pass: "200-399", "200,204,301-302". Default
	// 200-399. A redirect is an answer and is not followed.
	Status string
	// Contains is a text that the body must hold, and Match an RE2 expression
	// that it must match. Both look at the first MaxBody bytes.
	Contains, Match string
	// AgentHeader names a response header in which the endpoint says how much
	// work it wants, in the words of [Agent]. Default: none.
	AgentHeader string
}

func (o HTTPOptions) withDefaults() HTTPOptions {
	setDefault(&o.Method, http.MethodGet)
	setDefault(&o.Path, "/")
	setDefault(&o.Status, "200-399")
	return o
}

func validateHTTP(c Check) error {
	o := c.HTTP
	if !isToken(o.Method) {
		return fmt.Errorf("http method %s is not a method name such as GET or HEAD", quote(o.Method))
	}
	if !strings.HasPrefix(o.Path, "/") || !isVisible(o.Path) {
		return fmt.Errorf("http path %s is not valid; want / and then visible ASCII characters, others as %%XX", quote(o.Path))
	}
	if !isVisible(o.Host) {
		return fmt.Errorf("http host %s is not valid; want a name or an address, with a port if needed", quote(o.Host))
	}
	if err := validateHeaders(o.Headers); err != nil {
		return err
	}
	if _, err := parseStatus(o.Status); err != nil {
		return err
	}
	if _, err := regexp.Compile(o.Match); err != nil {
		return fmt.Errorf("http match is not an RE2 expression: %w", err)
	}
	if o.AgentHeader != "" && !isToken(o.AgentHeader) {
		return fmt.Errorf("http agent header %s is not a header name", quote(o.AgentHeader))
	}
	if o.Method == http.MethodHead && o.looksIntoBody() {
		return errors.New("http method HEAD has no body for contains or match to look into; use GET")
	}
	return nil
}

func validateHTTPS(c Check) error {
	if err := validateHTTP(c); err != nil {
		return err
	}
	return validateTLS(c.TLS)
}

func (o HTTPOptions) looksIntoBody() bool { return o.Contains != "" || o.Match != "" }

func validateHeaders(headers string) error {
	if headers == "" {
		return nil
	}
	for line := range strings.SplitSeq(headers, "\n") {
		name, value, ok := strings.Cut(line, ":")
		if !ok || !isToken(name) || strings.ContainsFunc(value, isControl) {
			return fmt.Errorf("http header %s is not valid; want \"Name: value\" on one line", quote(line))
		}
		switch http.CanonicalHeaderKey(name) {
		case "Host":
			return errors.New("http header Host is set by the option host")
		case "Connection", "Content-Length", "Transfer-Encoding":
			return fmt.Errorf("http header %s belongs to the probe and cannot be set", name)
		}
	}
	return nil
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// isVisible reports whether s holds only visible ASCII characters.
func isVisible(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f })
}

// isToken reports whether s is a token of RFC 9110 section 5.6.2.
func isToken(s string) bool {
	return s != "" && isVisible(s) && !strings.ContainsAny(s, "\"(),/:;<=>?@[\\]{}")
}

// statusRange is an inclusive range of status codes.
type statusRange struct{ first, last int }

// parseStatus reads a list of codes and ranges, such as "200,204,300-399".
func parseStatus(s string) ([]statusRange, error) {
	var set []statusRange
	for part := range strings.SplitSeq(s, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			last = first
		}
		lo, err1 := strconv.Atoi(first)
		hi, err2 := strconv.Atoi(last)
		if err1 != nil || err2 != nil || lo < 100 || hi > 599 || lo > hi {
			return nil, fmt.Errorf("http status %s is not valid; want codes and ranges from 100 to 599, such as 200-299,304", quote(part))
		}
		set = append(set, statusRange{lo, hi})
	}
	return set, nil
}
