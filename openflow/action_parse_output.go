package openflow

import "strings"

// outputAction reads the actions that send packets.
func (p *actionParser) outputAction(key, arg, _ string) (bool, error) {
	switch {
	case key == "output":
		return true, p.output(arg)
	case strings.EqualFold(key, "controller"):
		return true, p.controller(arg)
	case key == "group":
		n, err := parse32(arg)
		p.add(Group(n))
		return true, err
	case key == "set_queue":
		n, err := parse32(arg)
		p.add(SetQueue(n))
		return true, err
	case key == "enqueue":
		port, queue, _ := strings.Cut(strings.Replace(arg, ":", ",", 1), ",")
		number, err := ParsePort(port)
		if err != nil {
			return true, err
		}
		n, err := parse32(queue)
		p.add(SetQueue(n), Output{Port: number, MaxLen: MaxLenAll}, PopQueue{})
		return true, err
	case key == "bundle", key == "bundle_load":
		return true, p.bundle(arg, key == "bundle_load")
	case key == "sample":
		return true, p.sample(arg)
	}
	return false, nil
}

func (p *actionParser) output(arg string) error {
	if strings.Contains(arg, "port=") && strings.Contains(arg, "max_len=") {
		var a OutputTrunc
		err := keyValues(arg, func(key, value string) (err error) {
			switch key {
			case "port":
				a.Port, err = ParsePort(value)
			case "max_len":
				a.MaxLen, err = parse32(value)
			default:
				err = unknownKey(key)
			}
			return err
		})
		p.add(a)
		return err
	}
	if port, err := ParsePort(arg); err == nil {
		p.add(outputTo(port))
		return nil
	}
	src, err := parseSubfield(arg)
	p.add(OutputReg{Src: src, MaxLen: MaxLenAll})
	return err
}

// controller reads the argument of action controller and writes the oldest
// action that can say it.
func (p *actionParser) controller(arg string) error {
	if n, err := parse16(arg); err == nil {
		p.add(Output{Port: PortController, MaxLen: n})
		return nil
	}
	a := Controller2{MaxLen: MaxLenAll, Reason: PacketInAction}
	err := keyValues(arg, func(key, value string) (err error) {
		switch key {
		case "reason":
			a.Reason, err = parseReason(value)
		case "max_len":
			a.MaxLen, err = parse16(value)
		case "id":
			a.ControllerID, err = parse16(value)
		case "userdata":
			a.UserData, err = parseDotted(value)
		case "pause":
			a.Pause = true
		case "meter_id":
			a.MeterID, err = parse32(value)
		default:
			err = unknownKey(key)
		}
		return err
	})
	switch {
	case len(a.UserData) > 0 || a.Pause || a.MeterID != 0:
		p.add(a)
	case a.Reason != PacketInAction || a.ControllerID != 0:
		p.add(Controller{MaxLen: a.MaxLen, ControllerID: a.ControllerID, Reason: a.Reason})
	default:
		p.add(Output{Port: PortController, MaxLen: a.MaxLen})
	}
	return err
}

func parseReason(s string) (PacketInReason, error) {
	for i, name := range packetInReasons {
		if s == name {
			return PacketInReason(i), nil
		}
	}
	v, err := parseUint(s, 8)
	return PacketInReason(v), err
}

// parseDotted reads octets as 01.02.ff.
func parseDotted(s string) ([]byte, error) {
	digits := strings.ReplaceAll(s, ".", "")
	if len(digits)%2 != 0 {
		return nil, textError("octets", s, "want pairs of digits like 01.02.ff")
	}
	b := make([]byte, len(digits)/2)
	for i := range b {
		v, err := parseUint("0x"+digits[2*i:2*i+2], 8)
		if err != nil {
			return nil, textError("octets", s, "want pairs of digits like 01.02.ff")
		}
		b[i] = byte(v)
	}
	return b, nil
}

func parseHashFields(s string) (HashFields, error) {
	for h := HashEthSrc; h <= HashSymmetricL3; h++ {
		if s == h.String() {
			return h, nil
		}
	}
	return 0, textError("hash", s, "not known")
}

// bundle reads "fields,basis,algorithm,ofport,[dst,]members:1,2".
func (p *actionParser) bundle(arg string, load bool) error {
	head, members, found := strings.Cut(arg, "members:")
	if !found {
		if head, members, found = strings.Cut(arg, "slaves:"); !found {
			return textError("bundle", arg, "members: is missing")
		}
	}
	words, err := splitList(head)
	want := 4
	if load {
		want = 5
	}
	if err != nil || len(words) != want || words[3] != "ofport" {
		return textError("bundle", arg, "want fields,basis,algorithm,ofport,members:...")
	}
	var a LinkBundle
	if a.Fields, err = parseHashFields(words[0]); err != nil {
		return err
	}
	if a.Basis, err = parse16(words[1]); err != nil {
		return err
	}
	switch words[2] {
	case "active_backup":
		a.Algorithm = BundleActiveBackup
	case "hrw", "highest_random_weight":
		a.Algorithm = BundleHRW
	default:
		return textError("bundle", words[2], "want active_backup or hrw")
	}
	if load {
		if a.Dst, err = parseSubfield(words[4]); err != nil {
			return err
		}
	}
	ports, err := splitList(members)
	for _, word := range ports {
		port, err := ParsePort(word)
		if err != nil {
			return err
		}
		a.Members = append(a.Members, port)
	}
	p.add(a)
	return err
}

func (p *actionParser) sample(arg string) error {
	a := Sample{SamplingPort: PortAny}
	err := keyValues(arg, func(key, value string) (err error) {
		switch key {
		case "probability":
			a.Probability, err = parse16(value)
		case "collector_set_id":
			a.CollectorSetID, err = parse32(value)
		case "obs_domain_id":
			a.ObsDomainID, err = parse32(value)
		case "obs_point_id":
			a.ObsPointID, err = parse32(value)
		case "sampling_port":
			a.SamplingPort, err = ParsePort(value)
		case "ingress":
			a.Direction = SampleIngress
		case "egress":
			a.Direction = SampleEgress
		default:
			err = unknownKey(key)
		}
		return err
	})
	p.add(a)
	return err
}
