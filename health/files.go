package health

// CheckFiles reads the files that c names, and returns an error if one of them
// could not be used now: [Prober.Set] would fail for that reason.
func (c Check) CheckFiles() error {
	switch c.Type {
	case HTTPS, GRPCS:
		_, err := newTLSClient(c.TLS, "", "")
		return err
	case Exec:
		if c.Command == "" {
			return nil
		}
		return soleWriter(c.Command)
	}
	return nil
}
