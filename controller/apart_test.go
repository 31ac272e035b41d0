package controller

import (
	"strings"
	"testing"

	"brlb/controller/config"
)

func TestKeptApart(t *testing.T) {
	const second = "bridge: br-2\nzone: 2\napi: {http: \"\"}\n"
	for _, c := range []struct{ second, want string }{
		{second, ""},
		{"ovsdb: unix:/other.sock\nbridge: br-2\napi: {http: 127.0.0.1:9291}\n", ""},
		{"", "both have bridge br-lb; set `bridge`"},
		{"bridge: br-2\napi: {http: \"\", socket: /run/brlb/br-lb.sock}\n", "both have the API socket /run/brlb/br-lb.sock; set `api: {socket: PATH}`"},
		{"bridge: br-2\n", "both have the HTTP address 127.0.0.1:9290; set `api: {http: HOST:PORT}`"},
		{second + "openflow: {listen: \"unix:/var/run/openvswitch/brlb-br-lb.sock\"}\n", "both have the OpenFlow socket"},
		{"bridge: br-2\napi: {http: \"\"}\n", "both have the conntrack zone 18200"},
		{"bridge: br-2\nzone: 1816\napi: {http: \"\"}\n", "both have the conntrack zone 18200"},
		{"bridge: br-2\nzone: 50968\napi: {http: \"\"}\n", "both have the conntrack zone 18200"},
		{"bridge: br-2\nzone: 18202\napi: {http: \"\"}\n", "both have the conntrack zone 18202"},
		{"bridge: br-2\nzone: 34584\napi: {http: \"\"}\n", "both have the conntrack zone 1816"},
	} {
		cfgs := []*config.Config{parse(t, strings.Replace(reloadable, "id: 2", "id: 2, conntrack: {limit: 10}", 1)), parse(t, c.second+reloadable)}
		err := keptApart([]string{"a.yaml", "b.yaml"}, cfgs)
		if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), "a.yaml and b.yaml cannot run together: "+c.want) {
			t.Errorf("%q: %v, want %s", c.second, err, c.want)
		}
	}
}
