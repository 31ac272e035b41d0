package metrics

import (
	"net/http"
	"runtime"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"brlb/controller/api"
)

// Source is the controller: [api.Backend] is one.
type Source interface {
	Metrics() *api.Metrics
}

// Handler answers scrapes with brlb's metrics and those of its process and of
// the Go runtime.
func Handler(source Source) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		NewCollector(source),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	// One series that cannot be shown must not hide all the others.
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorHandling:       promhttp.ContinueOnError,
		MaxRequestsInFlight: 4,
		Registry:            registry,
	})
}

// NewCollector returns a collector that asks the source at every scrape.
func NewCollector(source Source) prometheus.Collector { return &collector{source} }

type collector struct{ source Source }

// Describe implements [prometheus.Collector].
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, f := range families {
		out <- f
	}
}

// Collect implements [prometheus.Collector].
func (c *collector) Collect(out chan<- prometheus.Metric) {
	m := c.source.Metrics()
	s := scrape{out}
	s.gauge(buildInfo, 1, m.Status.Version, runtime.Version())
	s.bridge(m)
	s.session(m)
	s.bundles(m)
	table := &m.Status.Conntrack
	if counted := !table.At.IsZero(); counted || table.Zone.Entries > 0 {
		s.zone(&table.Zone, "zone")
	}
	if table.Datapath != (api.TableUsage{}) {
		s.usage(table.Datapath, "datapath", "", "")
	}
	for i := range table.Pools {
		s.zone(&table.Pools[i], "pool")
	}
	for i := range m.Status.Services {
		service := &m.Status.Services[i]
		s.gauge(serviceOnBackup, truth(service.Pool != service.Primary), service.Name)
	}
	for i := range m.Status.Pools {
		s.pool(&m.Status.Pools[i])
	}
	for pool, moves := range m.SlotsMoved {
		s.counter(slotsMoved, moves.Needed, pool, "needed")
		s.counter(slotsMoved, moves.Collateral, pool, "collateral")
	}
	for key, probe := range m.Probes {
		for result, n := range probe.Results {
			s.counter(probes, n, key.Pool, key.Member, key.Check, result)
		}
		s.histogram(probeSeconds, probe.Seconds, key.Pool, key.Member, key.Check)
	}
}

// scrape sends the values of one scrape.
type scrape struct{ out chan<- prometheus.Metric }

func (s scrape) bridge(m *api.Metrics) {
	s.gauge(inSync, truth(m.Status.InSync))
	s.gauge(degraded, truth(len(m.Status.Degraded) > 0))
	s.gauge(ownFlows, float64(m.Status.Switch.OwnFlows))
	s.counter(driftRepairs, m.DriftRepairs)
	s.counter(eventsDropped, m.EventsDropped)
	s.counter(resent, m.Resent)
	s.counter(answered, m.Answered)
	s.gauge(reloadOK, truth(m.ReloadOK))
	if !m.ReloadAt.IsZero() {
		s.gauge(reloadAt, float64(m.ReloadAt.UnixMilli())/1000)
	}
}

func (s scrape) session(m *api.Metrics) {
	s.gauge(switchConnected, truth(m.Status.Switch.Connected))
	s.gauge(ovsdbConnected, truth(m.Status.OVSDB.Connected))
	s.counter(sessions, m.Sessions)
	for kind, n := range m.MessagesSent {
		s.counter(messages, n, "sent", kind)
	}
	for kind, n := range m.MessagesRecv {
		s.counter(messages, n, "received", kind)
	}
}

func (s scrape) bundles(m *api.Metrics) {
	for _, outcome := range []string{"applied", "rejected", "unknown"} {
		s.counter(bundles, m.Bundles[outcome], outcome)
	}
	s.histogram(bundleSeconds, m.BundleSeconds)
	s.histogram(convergeSeconds, m.ConvergeSeconds)
	s.counter(flowMods, m.BundleRows)
}

func (s scrape) zone(z *api.ZoneUsage, scope string) {
	s.usage(z.TableUsage, scope, strconv.Itoa(int(z.Number)), strings.Join(z.Pools, ","))
}

func (s scrape) usage(u api.TableUsage, labels ...string) {
	s.gauge(conntrackEntries, float64(u.Entries), labels...)
	if u.Limit > 0 {
		s.gauge(conntrackLimit, float64(u.Limit), labels...)
	}
}

func (s scrape) pool(p *api.Pool) {
	s.gauge(poolSlots, float64(p.Slots), p.Name)
	s.gauge(poolActive, float64(p.Active), p.Name)
	anchor := ""
	if p.Anchor != nil {
		anchor = p.Anchor.Digest
		s.gauge(rebaseSlots, float64(p.Anchor.RebaseMoves), p.Name)
	}
	s.gauge(poolLayout, 1, p.Name, p.Layout, p.Version, p.Digest, anchor)
	for _, rule := range []string{"panic", "kept", "short"} {
		s.gauge(poolEmergency, truth(p.Emergency == rule), p.Name, rule)
	}
	states := map[string]int{"up": 0, "down": 0, "unknown": 0, "draining": 0, "disabled": 0}
	for i := range p.Members {
		m := &p.Members[i]
		states[m.State]++
		s.gauge(memberActive, truth(m.Active), p.Name, m.Name, m.Address)
		s.gauge(memberHealthy, truth(m.Health == "up"), p.Name, m.Name, m.Address)
		s.gauge(memberSlots, float64(m.Slots), p.Name, m.Name, m.Address)
		if m.Connections != nil {
			s.gauge(memberConnections, float64(*m.Connections), p.Name, m.Name, m.Address)
		}
		s.gauge(memberWeight, float64(m.Weight)*float64(m.Percent)/100, p.Name, m.Name, m.Address)
	}
	for _, n := range p.Names {
		s.gauge(poolNames, truth(n.State == "resolved"), p.Name, n.Name, n.Host)
	}
	for state, n := range states {
		s.gauge(poolMembers, float64(n), p.Name, state)
	}
}

func (s scrape) gauge(d *prometheus.Desc, value float64, labels ...string) {
	s.send(prometheus.NewConstMetric(d, prometheus.GaugeValue, value, valid(labels)...))
}

func (s scrape) counter(d *prometheus.Desc, value uint64, labels ...string) {
	s.send(prometheus.NewConstMetric(d, prometheus.CounterValue, float64(value), valid(labels)...))
}

func (s scrape) histogram(d *prometheus.Desc, h api.Histogram, labels ...string) {
	buckets := make(map[float64]uint64, len(h.Bounds))
	for i := range min(len(h.Bounds), len(h.Counts)) {
		buckets[h.Bounds[i]] = h.Counts[i]
	}
	s.send(prometheus.NewConstHistogram(d, h.Count, h.Sum, buckets, valid(labels)...))
}

// send passes a metric on. Its error is about labels that don't fit the
// description, which the tests of this package rule out.
func (s scrape) send(m prometheus.Metric, err error) {
	if err == nil {
		s.out <- m
	}
}

// valid makes label values UTF-8, as Prometheus demands. Names of ports, and of
// members declared in OVSDB, may be anything.
func valid(labels []string) []string {
	for i := range labels {
		labels[i] = strings.ToValidUTF8(labels[i], "\uFFFD")
	}
	return labels
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
