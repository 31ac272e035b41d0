package config

import (
	"path/filepath"
	"time"

	"brlb/health"
)

// Defaults of a file that says nothing else.
const (
	DefaultBridge           = "br-lb"
	DefaultRunDir           = "/var/run/openvswitch"
	DefaultHTTP             = "127.0.0.1:9290"
	DefaultZone             = 18200
	DefaultStartDeadline    = 10 * time.Second
	DefaultNeighbourRefresh = 30 * time.Second
	DefaultMinTTL           = 5 * time.Second

	DefaultSlots  = 1024
	DefaultWeight = 1
	// DefaultCheckName is the check of a pool that names none. Unless the file
	// defines a check of that name, it is a tcp check with every default.
	DefaultCheckName = "tcp"

	// Gap between packets of BFD, and how many may be missed.
	DefaultBFDGap  = 300 * time.Millisecond
	DefaultBFDMult = 3

	DefaultInterval = time.Second
	DefaultTimeout  = 500 * time.Millisecond
	DefaultRise     = 2
	DefaultFall     = 3
)

// Defaults is the configuration of a file that sets nothing: no pool, no service.
func Defaults() *Config {
	c := defaults()
	c.derive()
	return c
}

// defaults is Defaults without what follows from other settings.
func defaults() *Config {
	return &Config{
		Bridge:           DefaultBridge,
		RunDir:           DefaultRunDir,
		OpenFlow:         OpenFlow{Mode: ModeController},
		API:              API{HTTP: DefaultHTTP},
		Zone:             DefaultZone,
		Miss:             MissNormal,
		StartDeadline:    DefaultStartDeadline,
		NeighbourRefresh: DefaultNeighbourRefresh,
		DNS:              DNS{MinTTL: DefaultMinTTL},
	}
}

// derive fills what is still empty and follows from other settings.
func (c *Config) derive() {
	setIfEmpty(&c.OVSDB, "unix:"+filepath.Join(c.RunDir, "db.sock"))
	switch c.OpenFlow.Mode {
	case ModeController:
		setIfEmpty(&c.OpenFlow.Listen, "unix:"+filepath.Join(c.RunDir, "brlb-"+c.Bridge+".sock"))
		setIfEmpty(&c.OpenFlow.Target, c.OpenFlow.Listen)
	case ModeService:
		setIfEmpty(&c.OpenFlow.Target, "unix:"+filepath.Join(c.RunDir, c.Bridge+".mgmt"))
	}
	setIfEmpty(&c.API.Socket, filepath.Join("/run/brlb", c.Bridge+".sock"))
}

func setIfEmpty(s *string, value string) {
	if *s == "" {
		*s = value
	}
}

// DefaultCheck is the check that an empty entry of the file means: a tcp connect.
func DefaultCheck(name string) Check {
	c := Check{Name: name, Check: health.Check{
		Type:     health.TCP,
		Interval: DefaultInterval,
		Rise:     DefaultRise,
		Fall:     DefaultFall,
	}}
	c.derive()
	return c
}

// derive fills the times that are still zero from the interval: a timeout never
// outlasts the gap between two probes, whichever of the gaps applies.
func (c *Check) derive() {
	if c.Timeout == 0 {
		c.Timeout = max(minInterval, min(DefaultTimeout, c.Interval/2))
	}
	if c.Fast == 0 {
		c.Fast = max(c.Interval/2, c.Timeout)
	}
	if c.Down == 0 {
		c.Down = c.Interval
	}
}
