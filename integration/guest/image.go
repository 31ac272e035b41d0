package guest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"brlb/integration/rootfs"
)

// kernelPackage always depends on the newest kernel of its kind.
const kernelPackage = "linux-image-cloud-amd64"

// keptModules are the parts of the kernel's directory of modules that the guest
// has.
var keptModules = []string{
	"kernel/net", "kernel/lib", "kernel/crypto", "kernel/arch", "kernel/drivers/net",
	"modules.builtin", "modules.builtin.modinfo", "modules.order",
}

// recipe is the guest's file system.
var recipe = rootfs.Recipe{
	Suite: "bookworm",
	Packages: []string{
		"openvswitch-switch", "iproute2", "kmod", "procps", "tcpdump",
		"iputils-ping", "conntrack", "nftables", "haproxy", "nginx-light", "wrk",
	},
	Without: []string{
		"./boot", "./dev", "./proc", "./sys", "./run", "./tmp",
		"./var/cache", "./var/lib/apt/lists", "./var/log",
		"./usr/share/doc", "./usr/share/info", "./usr/share/locale", "./usr/share/man",
	},
}

// ensure returns a directory with the kernel (vmlinuz) and an archive of the
// root file system (root.cpio), made once.
func ensure(ctx context.Context) (dir string, err error) {
	cache, err := rootfs.Open()
	if err != nil {
		return "", err
	}
	defer cache.Close()
	return cache.File(ctx, "guest-"+recipe.Hash(), recipe, func(root, path string) error {
		if err := os.Mkdir(path, 0o755); err != nil {
			return err
		}
		if err := addKernel(ctx, root, path); err != nil {
			return fmt.Errorf("add kernel: %w", err)
		}
		return pack(root, filepath.Join(path, "root.cpio"))
	})
}

// addKernel fetches the kernel's package, copies the kernel to dir, and its
// modules into the file system in root.
func addKernel(ctx context.Context, root, dir string) error {
	work, err := os.MkdirTemp(dir, "kernel-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	name, err := kernelName(ctx)
	if err != nil {
		return err
	}
	if _, err := output(ctx, work, "apt-get", "download", "-q", name); err != nil {
		return fmt.Errorf("%w (apt-get update may help)", err)
	}
	archives, err := filepath.Glob(filepath.Join(work, "*.deb"))
	if err != nil || len(archives) != 1 {
		return errors.Join(err, fmt.Errorf("%d packages of the name %s", len(archives), name))
	}
	tree := filepath.Join(work, "tree")
	if _, err := output(ctx, work, "dpkg-deb", "--extract", archives[0], tree); err != nil {
		return err
	}
	version := name[len("linux-image-"):]
	for _, part := range keptModules {
		from := filepath.Join(tree, "lib/modules", version, part)
		to := filepath.Join(root, "usr/lib/modules", version, part)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.Rename(from, to); err != nil {
			return err
		}
	}
	if _, err := output(ctx, work, "chroot", root, "depmod", version); err != nil {
		return err
	}
	return os.Rename(filepath.Join(tree, "boot/vmlinuz-"+version), filepath.Join(dir, "vmlinuz"))
}

// kernelName returns the package that holds the newest kernel.
func kernelName(ctx context.Context) (string, error) {
	out, err := output(ctx, "", "apt-cache", "depends", "--important", kernelPackage)
	if err != nil {
		return "", err
	}
	_, name, found := bytes.Cut(out, []byte("Depends: "))
	name, _, _ = bytes.Cut(name, []byte("\n"))
	if !found || !bytes.HasPrefix(name, []byte("linux-image-")) {
		return "", fmt.Errorf("what %s depends on is not known: run apt-get update; apt-cache says %q", kernelPackage, rootfs.Tail(out))
	}
	return string(name), nil
}

// output runs a program in a directory.
func output(ctx context.Context, dir, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", name, err, rootfs.Tail(stderr.Bytes()))
	}
	return out, nil
}

func pack(root, path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	archive := newCPIO(file)
	return errors.Join(archive.tree(root, recipe.Without), archive.close(), file.Close())
}

// assemble writes the first file system of one run: the kept one and what
// belongs to the run.
func assemble(w io.Writer, base string, options Options) error {
	file, err := os.Open(base)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := io.Copy(w, file); err != nil {
		return err
	}
	archive := newCPIO(w)
	archive.directory("guest")
	archive.text("init", initScript)
	archive.text("guest/run", options.Script)
	for name, path := range options.Files {
		archive.file("guest/"+name, path, 0o100755, 0, 0)
	}
	return archive.close()
}
