package cli_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"brlb/cmd/brlb/internal/cli"
)

// lab runs "brlb lab compare" with a terminal on standard error.
func lab(ctx context.Context, stderr *output, args ...string) (code int, stdout *output) {
	stdout = &output{}
	app := &cli.App{
		Stdout: stdout, Stderr: stderr, Progress: true, Now: time.Now, Getenv: func(string) string { return "" },
	}
	return app.Main(ctx, append([]string{"lab", "compare", "--members", "4", "--layout", "v1"}, args...)), stdout
}

// The bar goes to standard error and is wiped away at the end.
func TestLabShowsProgress(t *testing.T) {
	stderr := &output{}
	code, stdout := lab(t.Context(), stderr, "--pools", "4")
	bar := stderr.String()
	if code != 0 || !strings.Contains(bar, "\r[##########                              ]  25%") || !strings.HasSuffix(bar, "100%\r\x1b[K") {
		t.Errorf("exit code %d, standard error %q", code, bar)
	}
	if strings.ContainsAny(stdout.String(), "\r\x1b") {
		t.Errorf("standard output %q", stdout)
	}
}

// An interrupt ends a comparison that would go on for hours.
func TestLabIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stderr := &output{after: func(string) { cancel() }}
	if code, stdout := lab(ctx, stderr, "--pools", "1000000"); code != 0 || stdout.String() != "" {
		t.Errorf("exit code %d, standard output %q", code, stdout)
	}
}
