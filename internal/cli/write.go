package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	if err := c.refersToWhatIs(ctx, back); err != nil {
		return "", fmt.Errorf("going back to %s: %w", to.Title(), err)
	}
	change, err := c.changed(template, back, to)
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

// refersToWhatIs says what is missing where a pool is to refer to a template that is gone: no
// member could be built.
func (c *Cluster) refersToWhatIs(ctx context.Context, template *unstructured.Unstructured) error {
	to := c.reference(template)
	if to == "" {
		return nil
	}
	_, err := c.TemplateOf(ctx, template)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("it refers to %s, which does not exist: create that first", to)
	}
	return err
}

// shownDifferences bounds how many differences one line lists.
const shownDifferences = 3

func (c *Cluster) changed(template, back *unstructured.Unstructured, to Revision) (string, error) {
	live, err := c.renderOf(template)
	if err != nil {
		return "", err
	}
	return c.difference(template, back, live, to.Recorded.Rendered), nil
}

// difference says what two versions of a template have members built from that is not the same.
// To which other template a pool refers is no part of what it renders to that could be shown.
func (c *Cluster) difference(was, is *unstructured.Unstructured, before, after revision.Blueprint) string {
	differences := revision.Compare(before, after, revision.PathSet{})
	text := revision.Summary(differences, shownDifferences)
	from, to := c.reference(was), c.reference(is)
	if from == to {
		return text
	}
	referred := fmt.Sprintf("refers to: %s -> %s", cmp.Or(from, "nothing"), cmp.Or(to, "nothing"))
	if len(differences) <= 1 {
		return referred
	}
	return referred + "; " + text
}

// reference is the template that a pool refers to which is its own otherwise; "" for none.
func (c *Cluster) reference(template *unstructured.Unstructured) string {
	kinds := c.Objects.Kinds()
	if kinds.SharedTemplate.Empty() || template.GroupVersionKind().GroupKind() != kinds.Pool.GroupKind {
		return ""
	}
	is := c.Objects.Pool(template)
	if is.TemplateKind == "" {
		return ""
	}
	return fmt.Sprintf("%s %q", is.TemplateKind, is.Template)
}
