package guest

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// cpio writes an archive in the "newc" format, which the kernel unpacks into
// its first file system (its Documentation/driver-api/early-userspace,
// buffer-format). The kernel takes several archives one after the other.
type cpio struct {
	w       *bufio.Writer
	written int64
	inode   int
	err     error // the first; nothing is written after it
}

func newCPIO(w io.Writer) *cpio { return &cpio{w: bufio.NewWriterSize(w, 1<<20)} }

// add writes an entry with size bytes of content.
func (c *cpio) add(name string, mode uint32, uid, gid uint32, size int64, content io.Reader) {
	c.inode++
	c.printf("070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%s\x00",
		c.inode, mode, uid, gid, 1, 0, size, 0, 0, 0, 0, len(name)+1, 0, name)
	c.pad(4)
	if c.err != nil || size == 0 {
		return
	}
	n, err := io.CopyN(c.w, content, size)
	c.written += n
	c.err = err
	c.pad(4)
}

func (c *cpio) printf(format string, args ...any) {
	if c.err != nil {
		return
	}
	n, err := fmt.Fprintf(c.w, format, args...)
	c.written += int64(n)
	c.err = err
}

// pad fills up with zeros to a multiple of n.
func (c *cpio) pad(n int64) {
	c.printf("%s", strings.Repeat("\x00", int((n-c.written%n)%n)))
}

// text adds a file that everyone may read and execute.
func (c *cpio) text(name, content string) {
	c.add(name, syscall.S_IFREG|0o755, 0, 0, int64(len(content)), strings.NewReader(content))
}

// directory adds a directory.
func (c *cpio) directory(name string) { c.add(name, syscall.S_IFDIR|0o755, 0, 0, 0, nil) }

// file adds a file of this machine under a name.
func (c *cpio) file(name, path string, mode, uid, gid uint32) {
	if c.err != nil {
		return
	}
	file, err := os.Open(path)
	if err != nil {
		c.err = err
		return
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		c.err = err
		return
	}
	c.add(name, mode, uid, gid, info.Size(), file)
}

// tree adds what is below root. Of the directories without, given as "./dir",
// only the directory itself is added.
func (c *cpio) tree(root string, without []string) error {
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		stat := info.Sys().(*syscall.Stat_t)
		switch {
		case info.Mode().IsRegular():
			c.file(name, path, stat.Mode, stat.Uid, stat.Gid)
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			c.add(name, stat.Mode, stat.Uid, stat.Gid, int64(len(target)), strings.NewReader(target))
		case info.IsDir():
			c.add(name, stat.Mode, stat.Uid, stat.Gid, 0, nil)
			if slices.Contains(without, "./"+name) {
				return filepath.SkipDir
			}
		}
		return c.err // devices and sockets are made in the guest
	})
}

// close ends the archive.
func (c *cpio) close() error {
	c.add("TRAILER!!!", 0, 0, 0, 0, nil)
	c.pad(512)
	if c.err != nil {
		return fmt.Errorf("write cpio archive: %w", c.err)
	}
	return c.w.Flush()
}
