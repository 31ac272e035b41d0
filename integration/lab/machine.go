package lab

import (
	"context"
	"os"
	"os/exec"
)

// Machine is where the Open vSwitch daemons run: this machine or a container.
type Machine interface {
	// Netns is the path of the network namespace the daemons run in.
	Netns() string
	// OVSDB is how a program in that namespace reaches the database.
	OVSDB() string
	// OVSDBRemotes are the ovsdb-server --remote values that make it so.
	OVSDBRemotes() []string
	// Start starts a program; argv[0] is found in the machine's PATH. env
	// adds to the machine's environment.
	Start(ctx context.Context, argv, env []string) (*Process, error)
	// Close ends the machine and everything on it.
	Close() error
}

// StartMachine starts a machine called name that sees the directory dir under
// the same path.
type StartMachine func(ctx context.Context, name, dir string) (Machine, error)

// localMachine runs the daemons as children of this process, in the switch
// namespace.
type localMachine struct {
	ns  *Namespace
	dir string
}

func (l *Lab) startLocalMachine(_ context.Context, _, dir string) (Machine, error) {
	ns, err := l.addNamespace("sw")
	if err != nil {
		return nil, err
	}
	return &localMachine{ns: ns, dir: dir}, nil
}

func (m *localMachine) Netns() string { return "/run/netns/" + m.ns.Name }

func (m *localMachine) OVSDB() string { return "unix:" + m.dir + "/db.sock" }

func (m *localMachine) OVSDBRemotes() []string { return nil }

func (m *localMachine) Start(_ context.Context, argv, env []string) (*Process, error) {
	path, err := findProgram(argv[0])
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, argv[1:]...)
	cmd.Env = append(os.Environ(), env...)
	return m.ns.Start(cmd)
}

// Close has nothing to do: the lab owns the namespace and the processes.
func (m *localMachine) Close() error { return nil }
