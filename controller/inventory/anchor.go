package inventory

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"brlb/controller/config"
	"brlb/maglev"
)

// anchors reads the pools' anchors from a bridge's external_ids: each is a JSON
// object of the members' weights by their keys.
func anchors(ids map[string]string) (found map[string][]maglev.Member, problems []string) {
	found = map[string][]maglev.Member{}
	for key, value := range ids {
		pool, ok := strings.CutPrefix(key, anchorPrefix)
		if !ok {
			continue
		}
		members, err := parseAnchor(value)
		if err != nil {
			problems = append(problems, fmt.Sprintf("external_ids:%.80q is no anchor of brlb, ignored: %v", key, err))
			continue
		}
		found[pool] = members
	}
	slices.Sort(problems)
	return found, problems
}

// parseAnchor reads a stored anchor, sorted by key.
func parseAnchor(text string) ([]maglev.Member, error) {
	var weights map[string]uint32
	if err := json.Unmarshal([]byte(text), &weights); err != nil {
		return nil, err
	}
	if len(weights) > maglev.MaxMembers {
		return nil, fmt.Errorf("it has %d members, more than a pool can have", len(weights))
	}
	weighted := false
	members := make([]maglev.Member, 0, len(weights))
	for key, weight := range weights {
		if _, err := maglev.ParseKey(key); err != nil {
			return nil, err
		}
		if weight > config.MaxAnchorWeight {
			return nil, fmt.Errorf("%s has weight %d, more than %d", key, weight, config.MaxAnchorWeight)
		}
		weighted = weighted || weight > 0
		members = append(members, maglev.Member{Key: key, Weight: weight})
	}
	if !weighted {
		return nil, fmt.Errorf("no member has a weight above 0")
	}
	slices.SortFunc(members, func(a, b maglev.Member) int { return strings.Compare(a.Key, b.Key) })
	return members, nil
}

// anchorText is an anchor in the form that parseAnchor reads.
func anchorText(members []maglev.Member) string {
	weights := make(map[string]uint32, len(members))
	for _, m := range members {
		weights[m.Key] = m.Weight
	}
	text, err := json.Marshal(weights)
	if err != nil {
		panic(err) // a map of numbers by strings has a JSON form
	}
	return string(text)
}
