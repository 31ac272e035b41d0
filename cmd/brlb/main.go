// Command brlb is a layer-4 load balancer that programs Open vSwitch.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"brlb/cmd/brlb/internal/cli"
	"brlb/controller"
	"brlb/integration/demo"
	"brlb/integration/lab"
)

// version is set when a release is built.
var version string

func main() {
	if lab.Main() {
		return // this process was a server of the demo's
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends brlb at once
	app := cli.App{
		Version:  buildVersion(),
		Stdout:   os.Stdout,
		Stderr:   os.Stderr,
		Terminal: isTerminal(os.Stdout),
		Progress: isTerminal(os.Stderr),
		Getenv:   os.Getenv,
		Now:      time.Now,
		Run: func(ctx context.Context, o cli.RunOptions) error {
			return controller.Run(ctx, controller.Options(o))
		},
		TraceFile: controller.TraceFile,
		Demo: func(ctx context.Context, o cli.DemoOptions) error {
			return demo.Run(ctx, demo.Options(o))
		},
	}
	os.Exit(app.Main(ctx, os.Args[1:]))
}

// buildVersion is the release, or what the Go toolchain knows of the source.
func buildVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		return strings.Trim(info.Main.Version, "()") // "(devel)" outside of a repository
	}
	return "unknown"
}

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
