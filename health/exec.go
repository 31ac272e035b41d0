package health

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// The interface between an exec check and its program:
//
//   - It is started with the target's address and port as its two arguments,
//     and with nothing in its environment but PATH, CHECK_ADDRESS, CHECK_PORT
//     and CHECK_TIMEOUT (in milliseconds). Its standard input is empty.
//   - Exit code 0 passes, 75 (EX_TEMPFAIL of sysexits.h) is inconclusive, any
//     other fails. The first line that it prints is kept as the reason.
//   - It runs in the network namespace that the prober was given.
//   - At the timeout it is killed together with its process group.
//   - The program and the directories that lead to it belong to root or to the
//     user this process runs as, and nobody else may write to them.
const (
	execPath     = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	exitTempFail = 75
	// maxOutput bounds what is kept of a program's output, in bytes.
	maxOutput = 256
	// pipeGrace is how long a program's output may stay open after it ended.
	pipeGrace = 50 * time.Millisecond
)

func validateExec(c Check) error {
	if c.Command == "" {
		return errors.New("check type exec needs command, the path of the program")
	}
	if !filepath.IsAbs(c.Command) || filepath.Clean(c.Command) != c.Command {
		return fmt.Errorf("command %s is not valid; want a clean absolute path", quote(c.Command))
	}
	return nil
}

// execProbe runs a program.
type execProbe struct {
	command string
	timeout time.Duration
	netns   string
}

func compileExec(c Check, w way) (probe, error) {
	if err := soleWriter(c.Command); err != nil {
		return nil, err
	}
	return execProbe{c.Command, c.Timeout, w.netns}, nil
}

func (p execProbe) probe(ctx context.Context, address netip.AddrPort) report {
	if err := soleWriter(p.command); err != nil {
		return localError(err)
	}
	host, port := address.Addr().String(), strconv.Itoa(int(address.Port()))
	cmd := exec.CommandContext(ctx, p.command, host, port)
	cmd.Dir = "/"
	cmd.Env = []string{
		execPath, "CHECK_ADDRESS=" + host, "CHECK_PORT=" + port,
		"CHECK_TIMEOUT=" + strconv.FormatInt(p.timeout.Milliseconds(), 10),
	}
	var output cappedBuffer
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = pipeGrace
	err := p.start(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	return judgeExit(ctx, err, output.firstLine())
}

func (p execProbe) start(cmd *exec.Cmd) error {
	if p.netns == "" {
		return cmd.Start()
	}
	return inNetns(p.netns, cmd.Start)
}

// judgeExit reports how a program ended.
func judgeExit(ctx context.Context, err error, line string) report {
	var exit *exec.ExitError
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay) && ctx.Err() == nil:
		return report{code: PROCOK, detail: "exit 0" + line}
	case ctx.Err() != nil:
		return report{code: PROCTOUT, detail: "killed at the timeout" + line}
	case !errors.As(err, &exit):
		return localError(err)
	case !exit.Exited():
		return report{code: SOCKERR, detail: "the program ended by " + exit.String() + line}
	case exit.ExitCode() == exitTempFail:
		return report{code: SOCKERR, detail: "exit 75, not counted" + line}
	default:
		return report{code: PROCERR, detail: "exit " + strconv.Itoa(exit.ExitCode()) + line}
	}
}

// soleWriter returns an error if somebody but root and this user could change
// the program at path, or put another in its place.
func soleWriter(path string) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return fmt.Errorf("command: %w", err)
	}
	for _, p := range []string{path, real} {
		for ; p != "/"; p = filepath.Dir(p) {
			if err := soleWriterOf(p); err != nil {
				return err
			}
		}
	}
	return nil
}

// soleWriterOf looks at one file or directory. In a sticky directory, such as
// /tmp, nobody can replace what belongs to others.
func soleWriterOf(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("command: %w", err)
	}
	owner := info.Sys().(*syscall.Stat_t).Uid
	open := info.Mode().Perm()&0o022 != 0 && info.Mode()&os.ModeSticky == 0
	if open || owner != 0 && int(owner) != os.Geteuid() {
		return fmt.Errorf("command: %s may be changed by others; want it owned by root and writable by its owner alone", path)
	}
	return nil
}

// cappedBuffer keeps the first maxOutput bytes written to it.
type cappedBuffer struct{ kept []byte }

func (b *cappedBuffer) Write(p []byte) (int, error) {
	room := maxOutput - len(b.kept)
	b.kept = append(b.kept, p[:min(room, len(p))]...)
	return len(p), nil
}

// firstLine returns ": " and the first line, quoted, or nothing.
func (b *cappedBuffer) firstLine() string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(b.kept)), "\n")
	if line == "" {
		return ""
	}
	return ": " + quote(line)
}
