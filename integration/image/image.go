// Package image runs a lab's Open vSwitch in a container, so that a scenario
// of package lab also runs against daemons that share nothing with the
// controller but a network: OVSDB and OpenFlow go over TCP.
//
// No image registry is needed. The image is made of Debian's packages by
// package rootfs and imported into the engine, once: its tag is a hash of what
// it is made of, and the file system is kept as a tar archive, so an engine that
// has lost the image gets it back in seconds.
//
// The engine is driven through its API by its own client module,
// github.com/moby/moby/client, which brings 18 modules with it;
// testcontainers-go brings about fifty, that client among them, for waiting and
// cleaning that package lab does already. Only tests import this package.
package image

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"brlb/integration/rootfs"
)

// repository is the image's name in the engine.
const repository = "brlb-openvswitch"

// OpenVSwitch is the recipe of the lab's switch: Debian 12 with Open vSwitch
// 3.1.
func OpenVSwitch() rootfs.Recipe {
	return rootfs.Recipe{
		Suite:    "bookworm",
		Packages: []string{"openvswitch-switch"},
		Without: []string{
			"./dev", "./proc", "./sys", // the engine makes its own
			"./var/cache/apt", "./var/lib/apt/lists", "./var/log",
			"./usr/share/doc", "./usr/share/locale", "./usr/share/man",
		},
	}
}

// Tag names the image by its content.
func Tag(recipe rootfs.Recipe) string { return repository + ":" + recipe.Hash() }

// ensure makes the engine have the image, which takes about a minute when
// neither the engine nor the cache has it, and returns its tag.
func ensure(ctx context.Context, engine *client.Client, recipe rootfs.Recipe) (string, error) {
	tag := Tag(recipe)
	cache, err := rootfs.Open()
	if err != nil {
		return "", err
	}
	defer cache.Close()
	if found, err := has(ctx, engine, tag); found || err != nil {
		return tag, err
	}
	name := strings.ReplaceAll(tag, ":", "-") + ".tar"
	archive, err := cache.File(ctx, name, recipe, func(root, path string) error {
		return pack(ctx, root, path, recipe.Without)
	})
	if err != nil {
		return "", err
	}
	return tag, load(ctx, engine, archive, tag)
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

// pack makes a tar archive of a root file system.
func pack(ctx context.Context, root, archive string, without []string) error {
	args := []string{"--create", "--file=" + archive, "--directory=" + root, "--numeric-owner"}
	for _, path := range without {
		args = append(args, "--exclude="+path+"/*")
	}
	if out, err := exec.CommandContext(ctx, "tar", append(args, ".")...).CombinedOutput(); err != nil {
		return fmt.Errorf("image: tar: %w: %s", err, rootfs.Tail(out))
	}
	return nil
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
