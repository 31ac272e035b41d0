package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"brlb/controller/api"
)

// completionTime is how long a shell waits for suggestions.
const completionTime = time.Second

// completeMembers suggests members: by name where it is unique, else with the
// pool before it.
func (a *App) completeMembers(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var all []string
	status := a.statusForCompletion(c.Context())
	names := map[string]int{}
	for _, p := range status.Pools {
		for _, m := range p.Members {
			names[m.Name]++
		}
	}
	for _, p := range status.Pools {
		for _, m := range p.Members {
			if m.Origin != "" {
				continue // the pool that it belongs to has it
			}
			name := m.Name
			if names[name] > 1 {
				name = p.Name + "/" + name
			}
			all = append(all, cobra.CompletionWithDesc(name, m.Address+" "+m.State))
		}
	}
	return all, cobra.ShellCompDirectiveNoFileComp
}

// completePools suggests pools.
func (a *App) completePools(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var all []string
	for _, p := range a.statusForCompletion(c.Context()).Pools {
		all = append(all, p.Name)
	}
	return all, cobra.ShellCompDirectiveNoFileComp
}

// statusForCompletion is empty when brlb doesn't answer: a shell has no place for
// an error.
func (a *App) statusForCompletion(ctx context.Context) *api.Status {
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	status, err := fetch(ctx, a, func(ctx context.Context, client *api.Client) (*api.Status, error) { return client.Status(ctx) })
	if err != nil {
		return &api.Status{}
	}
	return status
}
