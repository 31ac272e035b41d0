package config

import (
	"fmt"
	"io"
	"os"
)

// Parse reads a configuration, and no other file. name is what errors call it.
// The error, if any, is of type [Errors]; the Config is then nil.
func Parse(name string, data []byte) (*Config, error) {
	return parseAnd(name, data, func(*document, *Config) {})
}

func parseAnd(name string, data []byte, beyond func(*document, *Config)) (*Config, error) {
	d := &document{file: name, where: map[string]position{}}
	root := d.syntaxTree(data)
	if root == nil {
		return nil, d.err()
	}
	c := d.config(entry{node: root})
	d.checkMeaning(c)
	if len(d.errs) == 0 {
		beyond(d, c)
	}
	if err := d.err(); err != nil {
		return nil, err
	}
	c.splitFamilies()
	c.sort()
	return c, nil
}

// Load reads the configuration in the file at path, and the certificates and
// programs that its checks name. Its error is [Errors] if the file could be
// read and is wrong.
func Load(path string) (*Config, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	defer f.Close()
	// One byte more than permitted, so that Parse sees that it is too much.
	data, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	return parseAnd(path, data, (*document).checkFiles)
}
