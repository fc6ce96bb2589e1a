package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/revision"
	"github.com/freshbind/freshbind/internal/settings"
)

// DryRun says how far a write goes.
type DryRun string

const (
	// Real writes.
	Real DryRun = "none"
	// ClientSide sends nothing.
	ClientSide DryRun = "client"
	// ServerSide lets the API server check the write and forget it.
	ServerSide DryRun = "server"
)

// ParseDryRun returns the value of that name.
func ParseDryRun(s string) (DryRun, error) {
	switch d := DryRun(s); d {
	case Real, ClientSide, ServerSide:
		return d, nil
	}
	return "", fmt.Errorf("--dry-run %q: accepted are none, client, server", s)
}

// Suffix is put behind what would be done.
func (d DryRun) Suffix() string {
	switch d {
	case ClientSide:
		return " (dry run)"
	case ServerSide:
		return " (server dry run)"
	}
	return ""
}

// fieldManager is who writes, in managedFields.
const fieldManager = "freshbind-cli"

// Annotate sets an annotation of a pool, or removes it for "". It fails when
// the pool is another one by now.
func (c *Cluster) Annotate(ctx context.Context, pool *unstructured.Unstructured, key, value string, dry DryRun) error {
	if dry == ClientSide {
		return nil
	}
	var v any
	if value != "" {
		v = value
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": pool.GetUID(), "annotations": map[string]any{key: v},
	}})
	if err != nil {
		return fmt.Errorf("encode patch: %w", err)
	}
	options := []client.PatchOption{client.FieldOwner(fieldManager)}
	if dry == ServerSide {
		options = append(options, client.DryRunAll)
	}
	if err := c.Client.Patch(ctx, pool.DeepCopy(), client.RawPatch(types.MergePatchType, patch), options...); err != nil {
		return fmt.Errorf("annotating pool %s: %w", pool.GetName(), err)
	}
	return nil
}

// RestartTime is what a restart of the pool has to say so that every member
// that exists now is older, the one that was born this second included:
// creation times are whole seconds, and a member created at that time counts as
// older. No member's own time is passed over because of a clock that is late.
func (c *Cluster) RestartTime(p *Pool) time.Time {
	at := c.Now().UTC().Truncate(time.Second)
	for i := range p.Members {
		if created := p.Members[i].Created.Time; created.After(at) {
			at = created.UTC()
		}
	}
	return at
}

// Restart makes every member that the pool has now stale.
func (c *Cluster) Restart(ctx context.Context, p *Pool, dry DryRun) error {
	return c.Annotate(ctx, p.Object, settings.RestartedAtKey, c.RestartTime(p).Format(time.RFC3339), dry)
}

var (
	errNoHistory = errors.New("no earlier revision is recorded, so there is nothing to go back to")
	// ErrDigests says that a revision was kept as digests.
	ErrDigests = errors.New("only digests of its values were kept (mode audit, or manager --revision-digests), so it cannot be restored: apply the template from its source")
)

// Target finds the revision to go back to: the one of that number, or for 0 the
// newest one that is not in force.
func Target(history []Revision, number int64) (Revision, error) {
	for i := len(history) - 1; i >= 0; i-- {
		r := history[i]
		if number == 0 && r.InForce || number != 0 && r.Number != number {
			continue
		}
		switch {
		case r.Digests:
			return Revision{}, fmt.Errorf("%s: %w", r.Title(), ErrDigests)
		case r.Recorded.Template == nil:
			return Revision{}, fmt.Errorf("%s cannot be read (controllerrevision %s)", r.Title(), r.Name)
		}
		return r, nil
	}
	if number != 0 {
		return Revision{}, fmt.Errorf("no revision %d is recorded: rollout history lists them", number)
	}
	return Revision{}, errNoHistory
}

// Undo puts the revision into the template, unless somebody wrote the template since it
// was read. It returns what changes.
func (c *Cluster) Undo(ctx context.Context, template *unstructured.Unstructured, to Revision, dry DryRun) (string, error) {
	back := template.DeepCopy()
	if err := c.Objects.Restore(back, to.Recorded.Template); err != nil {
		return "", fmt.Errorf("going back to %s: %w", to.Title(), err)
	}
	change, err := c.changed(template, to)
	if err != nil || dry == ClientSide {
		return change, err
	}
	options := []client.UpdateOption{client.FieldOwner(fieldManager)}
	if dry == ServerSide {
		options = append(options, client.DryRunAll)
	}
	if err := c.Client.Update(ctx, back, options...); err != nil {
		return "", fmt.Errorf("writing template %s: %w", template.GetName(), err)
	}
	return change, nil
}

// shownDifferences bounds how many differences one line lists.
const shownDifferences = 3

func (c *Cluster) changed(template *unstructured.Unstructured, to Revision) (string, error) {
	live, err := c.renderOf(template)
	if err != nil {
		return "", err
	}
	return revision.Summary(revision.Compare(live, to.Recorded.Rendered, revision.PathSet{}), shownDifferences), nil
}
