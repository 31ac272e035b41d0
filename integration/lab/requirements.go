package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrPrivilege tells that the process may not create network namespaces.
var ErrPrivilege = errors.New("lab: needs root (CAP_NET_ADMIN and CAP_SYS_ADMIN): run with sudo")

// ErrUnavailable is wrapped by a [Machine]'s errors that say that this kind of
// machine cannot be had here.
var ErrUnavailable = errors.New("lab: the switch's machine cannot be had here")

// Unavailable tells whether an error of [New] says that no lab can be had
// here, rather than that something failed: a test skips then. It is always
// false where the environment has BRLB_LAB_REQUIRED, as under `make test`,
// which installed what is needed: no test may skip there.
func Unavailable(err error) bool {
	if os.Getenv("BRLB_LAB_REQUIRED") != "" {
		return false
	}
	var missing *MissingError
	return errors.Is(err, ErrPrivilege) || errors.Is(err, ErrUnavailable) || errors.As(err, &missing)
}

// MissingError tells which programs the lab needs and does not find.
type MissingError struct {
	Packages []string // Debian packages to install
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("lab: Open vSwitch and its tools are not all installed: run apt-get install %s",
		strings.Join(e.Packages, " "))
}

// Missing lists the Debian packages to install before [New] can work; empty
// when all of them are there.
func Missing() []string {
	needs := []struct {
		pkg      string
		programs []string
	}{
		{"iproute2", []string{"ip"}},
		{"openvswitch-switch", []string{"ovs-vswitchd", "ovsdb-server", "ovsdb-tool", "ovs-vsctl", "ovs-ofctl", "ovs-appctl"}},
	}
	var missing []string
	for _, need := range needs {
		for _, p := range need.programs {
			if _, err := findProgram(p); err != nil {
				missing = append(missing, need.pkg)
				break
			}
		}
	}
	return missing
}

// findProgram looks a program up in PATH and in the directories of system
// programs, which an unprivileged user's PATH often lacks.
func findProgram(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	for _, dir := range []string{"/usr/sbin", "/sbin"} {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", fmt.Errorf("lab: find program %q: not in PATH nor /usr/sbin", name)
}

// checkPrivilege returns [ErrPrivilege] unless both capabilities are
// effective.
func checkPrivilege() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData // version 3 has 64 capabilities in two words
	if err := unix.Capget(&header, &data[0]); err != nil {
		return fmt.Errorf("lab: read own capabilities: %w", err)
	}
	const need = 1<<unix.CAP_NET_ADMIN | 1<<unix.CAP_SYS_ADMIN
	if data[0].Effective&need != need {
		return ErrPrivilege
	}
	return nil
}

// HasProgram tells whether the machine has a program.
func HasProgram(name string) bool {
	_, err := findProgram(name)
	return err == nil
}
