// Package config turns brlb's YAML file into a validated, immutable [Config].
//
// Reading is strict and has two stages. The shape stage walks the syntax tree:
// unknown or repeated keys, wrong kinds of value and values out of range. The
// meaning stage looks at values together: names that refer to nothing,
// addresses used twice, a timeout longer than its interval. Both run to the end,
// so that one run shows every mistake, each as one line
//
//	brlb.yaml:12:7: pools.web.members.be1.weight: -1 is out of range: ...
//
// The package is pure: bytes in, a Config or [Errors] out. Only [Load] touches
// files. The same meaning gives the same Config, whatever the order of the file:
// everything that has a name is sorted by it, addresses and ports by value.
//
// Supported today: IPv4, TCP, nat mode, layout v1. Anything
// else is refused with a sentence that says so.
package config
