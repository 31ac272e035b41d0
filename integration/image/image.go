// Package image runs a lab's Open vSwitch in a container, so that a scenario
// of package lab also runs against daemons that share nothing with the
// controller but a network: OVSDB and OpenFlow go over TCP.
//
// No image registry is needed. The image is made of Debian's packages by
// debootstrap and imported into the engine, once: its tag is a hash of what
// it is made of, and the file system is kept as a tar archive in the user's
// cache directory, so an engine that has lost the image gets it back in
// seconds.
//
// The engine is driven through its API by its own client module,
// github.com/moby/moby/client, which brings 18 modules with it;
// testcontainers-go brings about fifty, that client among them, for waiting and
// cleaning that package lab does already. Only tests import this package.
package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
)

// repository is the image's name in the engine.
const repository = "brlb-openvswitch"

// Recipe is what an image is made of.
type Recipe struct {
	Suite    string   // Debian release
	Packages []string // beside the minimal system
	// Without are parts of the file system that stay out of the image.
	Without []string
}

// OpenVSwitch is the recipe of the lab's switch: Debian 12 with Open vSwitch
// 3.1.
func OpenVSwitch() Recipe {
	return Recipe{
		Suite:    "bookworm",
		Packages: []string{"openvswitch-switch"},
		Without: []string{
			"./dev", "./proc", "./sys", // the engine makes its own
			"./var/cache/apt", "./var/lib/apt/lists", "./var/log",
			"./usr/share/doc", "./usr/share/locale", "./usr/share/man",
		},
	}
}

// Tag names the image by its content: equal recipes on machines of one
// architecture have equal tags.
func (r Recipe) Tag() string {
	hash := sha256.New()
	fmt.Fprintf(hash, "%s\n%s\n%q\n%q\n", runtime.GOARCH, r.Suite, r.Packages, r.Without)
	return repository + ":" + hex.EncodeToString(hash.Sum(nil))[:16]
}

// Ensure makes the engine have the image, which takes about a minute when
// neither the engine nor the cache directory has it, and returns its tag.
func (r Recipe) Ensure(ctx context.Context, engine *client.Client) (string, error) {
	tag := r.Tag()
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	// Test binaries run side by side: one builds, the others wait for it.
	unlock, err := lock(filepath.Join(cache, "lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	if found, err := has(ctx, engine, tag); found || err != nil {
		return tag, err
	}
	archive := filepath.Join(cache, strings.ReplaceAll(tag, ":", "-")+".tar")
	if _, err := os.Stat(archive); errors.Is(err, fs.ErrNotExist) {
		start := time.Now()
		slog.Info("building the container image from Debian packages, about a minute", "image", tag)
		if err := r.build(ctx, archive); err != nil {
			return "", err
		}
		slog.Info("built the container image", "image", tag, "archive", archive, "took", time.Since(start).Round(time.Second))
	}
	return tag, load(ctx, engine, archive, tag)
}

// cacheDir returns the directory for archives; without a home directory, as
// in some build systems, it is the system's cache.
func cacheDir() (string, error) {
	parent, err := os.UserCacheDir()
	if err != nil {
		parent = "/var/cache"
	}
	dir := filepath.Join(parent, "brlb")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("image: make cache directory: %w", err)
	}
	return dir, nil
}

// lock holds an exclusive lock on a file until the returned function runs.
func lock(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("image: open lock: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		file.Close()
		return nil, fmt.Errorf("image: lock %s: %w", path, err)
	}
	return func() { file.Close() }, nil
}

func has(ctx context.Context, engine *client.Client, tag string) (bool, error) {
	_, err := engine.ImageInspect(ctx, tag)
	if errdefs.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("image: look for %s: %w", tag, err)
	}
	return true, nil
}

// build makes the archive, under another name until it is whole.
func (r Recipe) build(ctx context.Context, archive string) error {
	root, err := os.MkdirTemp(filepath.Dir(archive), "root-")
	if err != nil {
		return fmt.Errorf("image: make directory: %w", err)
	}
	defer os.RemoveAll(root)
	debootstrap := exec.CommandContext(ctx, "debootstrap", "--variant=minbase",
		"--include="+strings.Join(r.Packages, ","), r.Suite, root)
	debootstrap.Env = append(os.Environ(), "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin")
	// What debootstrap mounts below root vanishes with its mount namespace,
	// also when it is killed: RemoveAll must not meet a mounted /proc.
	debootstrap.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	if out, err := debootstrap.CombinedOutput(); err != nil {
		return fmt.Errorf("image: debootstrap: %w (is it installed, and can Debian's archive be reached?): %s", err, tail(out))
	}
	part := archive + ".part"
	args := []string{"--create", "--file=" + part, "--directory=" + root, "--numeric-owner"}
	for _, path := range r.Without {
		args = append(args, "--exclude="+path+"/*")
	}
	if out, err := exec.CommandContext(ctx, "tar", append(args, ".")...).CombinedOutput(); err != nil {
		return errors.Join(fmt.Errorf("image: tar: %w: %s", err, tail(out)), os.Remove(part))
	}
	if err := os.Rename(part, archive); err != nil {
		return fmt.Errorf("image: keep archive: %w", err)
	}
	return nil
}

// tail returns the end of a program's output.
func tail(out []byte) []byte {
	const most = 1000
	return out[max(0, len(out)-most):]
}

// load imports the archive into the engine.
func load(ctx context.Context, engine *client.Client, archive, tag string) error {
	file, err := os.Open(archive)
	if err != nil {
		return fmt.Errorf("image: open archive: %w", err)
	}
	defer file.Close()
	source := client.ImageImportSource{Source: file, SourceName: "-"}
	progress, err := engine.ImageImport(ctx, source, tag, client.ImageImportOptions{})
	if err != nil {
		return fmt.Errorf("image: import %s: %w", archive, err)
	}
	defer progress.Close()
	// The engine answers at once and tells in the body how it goes.
	for decoder := json.NewDecoder(progress); ; {
		var line struct {
			Error string `json:"error"`
		}
		if err := decoder.Decode(&line); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("image: import %s: read progress: %w", archive, err)
		}
		if line.Error != "" {
			return fmt.Errorf("image: import %s: the engine says %.200q", archive, line.Error)
		}
	}
}
