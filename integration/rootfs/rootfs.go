// Package rootfs makes root file systems of Debian's packages by debootstrap,
// for containers and for guests. What is made of them is kept in the user's
// cache directory under a name that holds a hash of its recipe, so it is made
// once.
package rootfs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// Recipe is what a root file system is made of.
type Recipe struct {
	Suite    string   // Debian release
	Packages []string // beside the minimal system
	// Without are directories, such as "./usr/share/doc", whose content stays
	// out of what is made of the file system.
	Without []string
}

// Hash names the recipe by its content: equal recipes on machines of one
// architecture have equal hashes, 16 hexadecimal digits.
func (r Recipe) Hash() string {
	hash := sha256.New()
	fmt.Fprintf(hash, "%s\n%s\n%q\n%q\n", runtime.GOARCH, r.Suite, r.Packages, r.Without)
	return hex.EncodeToString(hash.Sum(nil))[:16]
}

// Cache is the directory for what is made. One process at a time has it open:
// test binaries run side by side, and one builds while the others wait.
type Cache struct {
	dir  string
	lock *os.File
}

// Open returns the cache once no other process has it open. Without a home
// directory, as in some build systems, it is in the system's cache.
func Open() (*Cache, error) {
	parent, err := os.UserCacheDir()
	if err != nil {
		parent = "/var/cache"
	}
	dir := filepath.Join(parent, "brlb")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("rootfs: make cache directory: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("rootfs: open lock: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("rootfs: lock %s: %w", lock.Name(), err), lock.Close())
	}
	return &Cache{dir: dir, lock: lock}, nil
}

// Close lets others have the cache.
func (c *Cache) Close() error { return c.lock.Close() }

// File returns the path of a kept file. If there is none of that name, pack
// makes it, at the path it is given, from the recipe's file system in root.
func (c *Cache) File(ctx context.Context, name string, recipe Recipe, pack func(root, path string) error) (string, error) {
	path := filepath.Join(c.dir, name)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return path, err
	}
	start := time.Now()
	slog.Info("building a root file system from Debian packages, about a minute", "file", path)
	root, err := os.MkdirTemp(c.dir, "root-")
	if err != nil {
		return "", fmt.Errorf("rootfs: make directory: %w", err)
	}
	defer os.RemoveAll(root)
	if err := recipe.debootstrap(ctx, root); err != nil {
		return "", err
	}
	// It has another name until it is whole.
	part := path + ".part"
	if err := pack(root, part); err != nil {
		return "", errors.Join(err, os.RemoveAll(part))
	}
	if err := os.Rename(part, path); err != nil {
		return "", fmt.Errorf("rootfs: keep %s: %w", name, err)
	}
	slog.Info("built a root file system", "file", path, "took", time.Since(start).Round(time.Second))
	return path, nil
}

func (r Recipe) debootstrap(ctx context.Context, root string) error {
	cmd := exec.CommandContext(ctx, "debootstrap", "--variant=minbase",
		"--include="+strings.Join(r.Packages, ","), r.Suite, root)
	cmd.Env = append(os.Environ(), "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin")
	// What debootstrap mounts below root vanishes with its mount namespace,
	// also when it is killed: RemoveAll must not meet a mounted /proc.
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("rootfs: debootstrap: %w (is it installed, and can Debian's archive be reached?): %s", err, Tail(out))
	}
	return nil
}

// Tail returns the end of a program's output, to be part of an error.
func Tail(out []byte) []byte {
	const most = 1000
	return out[max(0, len(out)-most):]
}
