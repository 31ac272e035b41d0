package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

const netnsDir = "/run/netns"

// labName matches the names of a lab's namespaces and directory; the first
// group is the pid of its owner.
var labName = regexp.MustCompile(`^brlb-([0-9]+)-[0-9]+(-.+)?$`)

// CleanStale removes the namespaces, processes and directories of labs whose
// owner died without Close, and returns the names of what it removed. Labs of
// processes that live are left alone.
func CleanStale() ([]string, error) {
	if err := checkPrivilege(); err != nil {
		return nil, err
	}
	var removed []string
	var errs []error
	for _, place := range []struct {
		dir    string
		remove func(name string) error
	}{
		{netnsDir, removeStaleNetns},
		{os.TempDir(), func(name string) error { return os.RemoveAll(filepath.Join(os.TempDir(), name)) }},
		{shortTempDir, func(name string) error { return os.RemoveAll(filepath.Join(shortTempDir, name)) }},
	} {
		entries, err := os.ReadDir(place.dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("lab: look for leftovers: %w", err))
		}
		for _, entry := range entries {
			if !Stale(entry.Name()) {
				continue
			}
			if err := place.remove(entry.Name()); err != nil {
				errs = append(errs, err)
				continue
			}
			removed = append(removed, entry.Name())
		}
	}
	return removed, errors.Join(errs...)
}

// Stale tells whether name is that of a lab, or of a part of one, whose owner
// is dead.
func Stale(name string) bool {
	match := labName.FindStringSubmatch(name)
	if match == nil {
		return false
	}
	pid, err := strconv.Atoi(match[1])
	return err == nil && errors.Is(unix.Kill(pid, 0), unix.ESRCH)
}

// removeStaleNetns kills what runs in the namespace and deletes it.
func removeStaleNetns(name string) error {
	path := filepath.Join(netnsDir, name)
	if err := killInNetns(path); err != nil {
		return err
	}
	if err := netns.DeleteNamed(name); err != nil {
		// Its owner died between making the file and the mount.
		if removeErr := os.Remove(path); removeErr != nil {
			return fmt.Errorf("lab: delete network namespace %s: %w", name, errors.Join(err, removeErr))
		}
	}
	return nil
}

// killInNetns kills every process of the namespace, which its owner, now
// dead, started there.
func killInNetns(path string) error {
	space, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("lab: look at network namespace: %w", err)
	}
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return err
	}
	for _, process := range processes {
		its, err := os.Stat(process + "/ns/net")
		if err != nil || !os.SameFile(space, its) {
			continue // ended meanwhile, or elsewhere
		}
		pid, err := strconv.Atoi(filepath.Base(process))
		if err != nil {
			continue
		}
		if err := unix.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("lab: kill process %d of a dead lab: %w", pid, err)
		}
	}
	return nil
}
