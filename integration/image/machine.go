package image

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"brlb/integration/lab"
)

// labLabel is the container label that holds the name of its lab.
const labLabel = "brlb.lab"

// closeTimeout bounds the removal of a container.
const closeTimeout = 30 * time.Second

// ErrNoEngine tells that no container engine answers. It is a
// [lab.ErrUnavailable].
var ErrNoEngine = fmt.Errorf("image: no container engine answers: install docker.io and start dockerd, or set DOCKER_HOST: %w", lab.ErrUnavailable)

// machine is a container in which both daemons run.
type machine struct {
	engine *client.Client
	id     string
	pid    int // of the container's first process
}

// Machine starts a container for a lab; it is a [lab.StartMachine]:
//
//	lab.New(ctx, lab.Options{Machine: image.Machine})
//
// It fails with [ErrNoEngine] where there is none. The container has no
// network of the engine's: the lab's hosts are plugged into its network
// namespace, and the controller runs there too, so OVSDB is reached at
// tcp:127.0.0.1:6640. The container sees the lab's directory, through which
// the lab's own tools reach the daemons.
func Machine(ctx context.Context, name, dir string) (lab.Machine, error) {
	engine, err := open(ctx)
	if err != nil {
		return nil, err
	}
	m, err := start(ctx, engine, name, dir)
	if err != nil {
		return nil, errors.Join(err, engine.Close())
	}
	return m, nil
}

// open connects to the engine and checks that it answers.
func open(ctx context.Context) (*client.Client, error) {
	engine, err := client.New(client.FromEnv)
	if err != nil {
		return nil, fmt.Errorf("image: configure the engine's client: %w", err)
	}
	if _, err := engine.Ping(ctx, client.PingOptions{}); err != nil {
		return nil, errors.Join(ErrNoEngine, err, engine.Close())
	}
	return engine, nil
}

func start(ctx context.Context, engine *client.Client, name, dir string) (*machine, error) {
	tag, err := ensure(ctx, engine, OpenVSwitch())
	if err != nil {
		return nil, err
	}
	const tun = "/dev/net/tun" // the userspace datapath makes internal ports of it
	created, err := engine.ContainerCreate(ctx, client.ContainerCreateOptions{
		Name: name,
		Config: &container.Config{
			Image:    tag,
			Hostname: name,
			Labels:   map[string]string{labLabel: name},
			// The daemons are started later and die before it.
			Cmd: []string{"sleep", "infinity"},
		},
		HostConfig: &container.HostConfig{
			NetworkMode: "none",
			CapAdd:      []string{"NET_ADMIN"},
			Binds:       []string{dir + ":" + dir},
			Resources: container.Resources{
				Devices: []container.DeviceMapping{{PathOnHost: tun, PathInContainer: tun, CgroupPermissions: "rwm"}},
			},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("image: create container %s: %w", name, err)
	}
	m := &machine{engine: engine, id: created.ID}
	if err := m.run(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("image: start container %s: %w", name, err), m.remove())
	}
	return m, nil
}

func (m *machine) run(ctx context.Context) error {
	if _, err := m.engine.ContainerStart(ctx, m.id, client.ContainerStartOptions{}); err != nil {
		return err
	}
	inspected, err := m.engine.ContainerInspect(ctx, m.id, client.ContainerInspectOptions{})
	if err != nil {
		return err
	}
	state := inspected.Container.State
	if state == nil || state.Pid == 0 {
		return errors.New("it ended at once")
	}
	m.pid = state.Pid
	return nil
}

func (m *machine) Netns() string { return fmt.Sprintf("/proc/%d/ns/net", m.pid) }

func (m *machine) OVSDB() string { return "tcp:127.0.0.1:6640" }

func (m *machine) OVSDBRemotes() []string { return []string{"ptcp:6640:127.0.0.1"} }

func (m *machine) Start(ctx context.Context, argv, env []string) (*lab.Process, error) {
	created, err := m.engine.ExecCreate(ctx, m.id, client.ExecCreateOptions{Cmd: argv, Env: env})
	if err != nil {
		return nil, fmt.Errorf("image: prepare %s: %w", argv[0], err)
	}
	if _, err := m.engine.ExecStart(ctx, created.ID, client.ExecStartOptions{Detach: true}); err != nil {
		return nil, fmt.Errorf("image: start %s: %w", argv[0], err)
	}
	inspected, err := m.engine.ExecInspect(ctx, created.ID, client.ExecInspectOptions{})
	if err != nil {
		return nil, fmt.Errorf("image: find %s: %w", argv[0], err)
	}
	if !inspected.Running {
		return nil, fmt.Errorf("image: %s ended at once with status %d", argv[0], inspected.ExitCode)
	}
	return lab.WatchProcess(inspected.PID)
}

func (m *machine) Close() error {
	return errors.Join(m.remove(), m.engine.Close())
}

func (m *machine) remove() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return remove(ctx, m.engine, m.id)
}

func remove(ctx context.Context, engine *client.Client, id string) error {
	if _, err := engine.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true}); err != nil {
		return fmt.Errorf("image: remove container: %w", err)
	}
	return nil
}

// CleanStale removes the containers of labs whose owner died without Close,
// and returns their names. It goes with [lab.CleanStale].
func CleanStale(ctx context.Context) ([]string, error) {
	engine, err := open(ctx)
	if err != nil {
		return nil, err
	}
	defer engine.Close()
	listed, err := engine.ContainerList(ctx, client.ContainerListOptions{
		All:     true,
		Filters: make(client.Filters).Add("label", labLabel),
	})
	if err != nil {
		return nil, fmt.Errorf("image: list containers: %w", err)
	}
	var removed []string
	var errs []error
	for _, item := range listed.Items {
		name := item.Labels[labLabel]
		if !lab.Stale(name) {
			continue
		}
		if err := remove(ctx, engine, item.ID); err != nil {
			errs = append(errs, err)
			continue
		}
		removed = append(removed, name)
	}
	return removed, errors.Join(errs...)
}
