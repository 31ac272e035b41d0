package health

import (
	"strings"
	"testing"
	"time"
)

func TestCheckDefaults(t *testing.T) {
	c := Check{}.WithDefaults()
	want := Check{
		Type: TCP, Interval: time.Second, Fast: 500 * time.Millisecond, Down: time.Second,
		Timeout: 500 * time.Millisecond, Rise: 2, Fall: 3,
	}
	if c != want {
		t.Errorf("defaults are %+v, want %+v", c, want)
	}
	if c.WithDefaults() != c {
		t.Error("defaults applied twice differ")
	}
	if got := c.DetectionBound(); got != 3500*time.Millisecond {
		t.Errorf("detection bound %v, want 3.5s", got)
	}
	short := Check{Interval: 200 * time.Millisecond}.WithDefaults()
	if short.Timeout != 200*time.Millisecond {
		t.Errorf("timeout of a 200ms interval is %v, want 200ms", short.Timeout)
	}
	for _, kind := range []Type{TCP, HTTP, HTTPS, GRPC, GRPCS, ICMP, AgentLine} {
		if err := (Check{Type: kind}).WithDefaults().Validate(); err != nil {
			t.Errorf("type %s with defaults: %v", kind, err)
		}
	}
}

func TestCheckValidate(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*Check)
		want   string // part of the error; empty for a valid check
	}{
		{"unknown type", func(c *Check) { c.Type = "smtp" }, `type "smtp" is not known; want one of agent, exec, grpc`},
		{"no interval", func(c *Check) { c.Interval = 0 }, "interval 0s is out of range; want 10ms to 1h"},
		{"negative timeout", func(c *Check) { c.Timeout = -1 }, "timeout -1ns is out of range"},
		{"timeout over interval", func(c *Check) { c.Timeout = 2 * time.Second }, "timeout 2s is longer than interval 1s"},
		{"timeout equal to interval", func(c *Check) { c.Timeout = time.Second }, ""},
		{"fast over interval", func(c *Check) { c.Fast = 2 * time.Second }, "fast 2s is longer than interval 1s"},
		{"down shorter than interval", func(c *Check) { c.Down = 100 * time.Millisecond }, ""},
		{"rise 0", func(c *Check) { c.Rise = 0 }, "rise 0 is out of range; want 1 to 100"},
		{"fall 101", func(c *Check) { c.Fall = 101 }, "fall 101 is out of range"},
		{"http options on tcp", func(c *Check) { c.Type, c.HTTP = TCP, HTTPOptions{Path: "/"} }, "type tcp takes no http options"},
		{"path without slash", func(c *Check) { c.HTTP.Path = "healthz" }, `http path "healthz" is not valid`},
		{"path with a line break", func(c *Check) { c.HTTP.Path = "/a\r\nX: y" }, "is not valid"},
		{"host with a line break", func(c *Check) { c.HTTP.Host = "a\r\nX: y" }, "http host"},
		{"method with a space", func(c *Check) { c.HTTP.Method = "GET /" }, "is not a method name"},
		{"header without colon", func(c *Check) { c.HTTP.Headers = "X-Probe" }, `http header "X-Probe" is not valid`},
		{"header with carriage return", func(c *Check) { c.HTTP.Headers = "X: a\rb" }, "is not valid"},
		{"header host", func(c *Check) { c.HTTP.Headers = "host: a" }, "is set by the option host"},
		{"header length", func(c *Check) { c.HTTP.Headers = "content-length: 3" }, "belongs to the probe"},
		{"two headers", func(c *Check) { c.HTTP.Headers = "X-A: 1\nX-B: 2" }, ""},
		{"status 99", func(c *Check) { c.HTTP.Status = "99" }, `http status "99" is not valid`},
		{"status backwards", func(c *Check) { c.HTTP.Status = "299-200" }, "is not valid"},
		{"status empty part", func(c *Check) { c.HTTP.Status = "200," }, "is not valid"},
		{"status list", func(c *Check) { c.HTTP.Status = "200-204, 301,404" }, ""},
		{"match", func(c *Check) { c.HTTP.Match = "(" }, "http match is not an RE2 expression"},
		{"body of HEAD", func(c *Check) { c.HTTP.Method, c.HTTP.Contains = "HEAD", "ok" }, "HEAD has no body"},
		{"tls options on http", func(c *Check) { c.TLS.SkipVerify = true }, "type http takes no tls options; only https, grpcs do"},
		{"expect on http", func(c *Check) { c.Expect = "ok" }, "type http takes no expect; only tcp, udp do"},
		{"service on http", func(c *Check) { c.Service = "shop" }, "takes no service"},
		{"command on http", func(c *Check) { c.Command = "/bin/true" }, "takes no command"},
		{"agent header with a space", func(c *Check) { c.HTTP.AgentHeader = "X Load" }, "agent header"},
		{"https", func(c *Check) { c.Type = HTTPS }, ""},
		{"cert without key", func(c *Check) { c.Type, c.TLS.CertFile = HTTPS, "/c.pem" }, "cert and key belong together"},
		{"ca that is not used", func(c *Check) { c.Type, c.TLS = HTTPS, TLSOptions{CAFile: "/ca.pem", SkipVerify: true} }, "give one of them"},
		{"relative ca", func(c *Check) { c.Type, c.TLS.CAFile = HTTPS, "ca.pem" }, "not an absolute path"},
		{"udp without send", func(c *Check) { c.Type, c.HTTP = UDP, HTTPOptions{} }, "type udp needs send"},
		{"udp", func(c *Check) { c.Type, c.HTTP, c.Send = UDP, HTTPOptions{}, "ping" }, ""},
		{"long send", func(c *Check) { c.Type, c.HTTP, c.Send = TCP, HTTPOptions{}, strings.Repeat("x", MaxSend+1) }, "send has 4097 bytes; want at most 4096"},
		{"service of grpc", func(c *Check) { c.Type, c.HTTP, c.Service = GRPC, HTTPOptions{}, "\xff" }, "is not valid; want at most 1024 bytes of UTF-8"},
		{"exec without command", func(c *Check) { c.Type, c.HTTP = Exec, HTTPOptions{} }, "type exec needs command"},
		{"exec with a relative path", func(c *Check) { c.Type, c.HTTP, c.Command = Exec, HTTPOptions{}, "/usr/../bin/true" }, "want a clean absolute path"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := Check{Type: HTTP}.WithDefaults()
			tc.change(&c)
			err := c.Validate()
			if tc.want == "" {
				if err != nil {
					t.Errorf("valid check refused: %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want one with %q", err, tc.want)
			}
			if err != nil && strings.ContainsAny(err.Error(), "\r\n") {
				t.Errorf("error has a line break: %q", err)
			}
		})
	}
}
