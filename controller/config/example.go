package config

import _ "embed"

//go:embed example.yaml
var example string

// Example is a complete configuration file with an explanation and the default
// of every key. Settings behind a "#" without space are at their default.
func Example() string { return example }
