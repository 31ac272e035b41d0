// Package guest runs programs under a Linux kernel of their own, in a virtual
// machine that qemu emulates: that kernel has Open vSwitch's datapath, which
// the kernel of a test machine may lack.
//
// The guest is Debian's cloud kernel with a root file system of Debian's
// packages, unpacked into memory at boot; no disk, no network, no privileges
// on this machine but those that debootstrap wants. It is slow: count on a
// tenth of this machine's speed.
package guest

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"brlb/integration/lab"
	"brlb/integration/rootfs"
)

// initScript is the guest's first process.
//
//go:embed init.sh
var initScript string

// Options say what a guest runs.
type Options struct {
	// Files are files of this machine by their names in the guest's directory
	// /guest. A program must not need libraries that the guest lacks.
	Files map[string]string
	// Script is run by sh as root, in /guest. Namespaces, tools and the
	// kernel's modules are at hand.
	Script string
	// Output gets what the script prints, as it comes.
	Output io.Writer
	// Counted gives the guest a single CPU and a clock that counts instructions,
	// 500 million a second: what it measures does not depend on how busy this
	// machine is. A second may then take ten.
	Counted bool
}

// needs are the programs without which there is no guest, and their packages.
var needs = []struct{ program, pkg string }{
	{"qemu-system-x86_64", "qemu-system-x86"},
	{"debootstrap", "debootstrap"},
	{"apt-get", "apt"},
	{"dpkg-deb", "dpkg"},
}

// available tells what this machine lacks; its errors are
// [lab.ErrUnavailable].
func available() error {
	if runtime.GOARCH != "amd64" {
		return fmt.Errorf("guest: its kernel is for amd64, this machine is %s: %w", runtime.GOARCH, lab.ErrUnavailable)
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("guest: debootstrap needs root: run with sudo: %w", lab.ErrUnavailable)
	}
	for _, need := range needs {
		if !lab.HasProgram(need.program) {
			return fmt.Errorf("guest: no %s: apt-get install %s: %w", need.program, need.pkg, lab.ErrUnavailable)
		}
	}
	return nil
}

// Run boots a guest, runs the script in it and returns the script's exit
// status. The first time it builds the guest, which takes a minute. The end of
// ctx ends the guest. An error is a [lab.ErrUnavailable] where no guest can be
// had, else one that ended the guest before the script; it then holds the end
// of the kernel's messages.
func Run(ctx context.Context, options Options) (status int, err error) {
	if err := available(); err != nil {
		return 0, err
	}
	image, err := ensure(ctx)
	if err != nil {
		return 0, fmt.Errorf("guest: %w", err)
	}
	dir, err := os.MkdirTemp("", "brlb-guest-")
	if err != nil {
		return 0, fmt.Errorf("guest: make directory: %w", err)
	}
	defer os.RemoveAll(dir)
	initrd := filepath.Join(dir, "initrd")
	file, err := os.Create(initrd)
	if err != nil {
		return 0, fmt.Errorf("guest: make its file system: %w", err)
	}
	if err := errors.Join(assemble(file, filepath.Join(image, "root.cpio"), options), file.Close()); err != nil {
		return 0, fmt.Errorf("guest: make its file system: %w", err)
	}
	console, exit := filepath.Join(dir, "console"), filepath.Join(dir, "exit")
	cpus := []string{"-accel", "tcg,thread=multi", "-smp", "2"}
	if options.Counted {
		cpus = []string{"-accel", "tcg,thread=single", "-smp", "1", "-icount", "shift=1,sleep=on"}
	}
	cmd := exec.CommandContext(ctx, "qemu-system-x86_64", append(cpus,
		"-cpu", "max", "-m", "3072",
		"-nodefaults", "-nographic", "-no-reboot", "-nic", "none",
		"-kernel", filepath.Join(image, "vmlinuz"), "-initrd", initrd,
		"-append", "console=ttyS0 rdinit=/init panic=-1 quiet mitigations=off",
		"-serial", "file:"+console, "-serial", "stdio", "-serial", "file:"+exit)...)
	cmd.Stdout = options.Output
	cmd.Stderr = options.Output
	cmd.WaitDelay = 10 * time.Second
	ran := cmd.Run()
	text, err := os.ReadFile(exit)
	if ran == nil && err == nil {
		if status, err = strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			return status, nil
		}
	}
	messages, _ := os.ReadFile(console) // what there is helps
	return 0, fmt.Errorf("guest: it ended before its script: %w; its kernel's last messages:\n%s", errors.Join(ctx.Err(), ran, err), rootfs.Tail(messages))
}
