package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/revision"
	"github.com/freshbind/freshbind/internal/settings"
)

// recorded answers from the revisions that were read already, so that one list
// serves all pools.
type recorded struct {
	all func() []appsv1.ControllerRevision
}

var errOnlyRevisions = errors.New("only revisions are kept here")

// Get is never asked: history is always listed.
func (recorded) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errOnlyRevisions
}

// List selects by namespace and labels.
func (r recorded) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	into, ok := list.(*appsv1.ControllerRevisionList)
	if !ok {
		return errOnlyRevisions
	}
	o := client.ListOptions{}
	o.ApplyOptions(opts)
	for _, cr := range r.all() {
		if o.Namespace != "" && o.Namespace != cr.Namespace {
			continue
		}
		if o.LabelSelector == nil || o.LabelSelector.Matches(labels.Set(cr.Labels)) {
			into.Items = append(into.Items, cr)
		}
	}
	return nil
}

func (s *Store) recorded() recorded {
	return recorded{func() []appsv1.ControllerRevision {
		var out []appsv1.ControllerRevision
		for _, cr := range all[*appsv1.ControllerRevision](s, revisions) {
			out = append(out, *cr)
		}
		return out
	}}
}

// Revision is one revision of a template, as recorded.
type Revision struct {
	Number int64  `json:"revision"`
	Hash   string `json:"hash"`
	// Name is that of the ControllerRevision.
	Name string `json:"name"`
	// InForce: it is what the template says now.
	InForce bool `json:"inForce"`
	// Since is when it was last put in force, to the second, as far as is known.
	Since metav1.Time `json:"since"`
	// Again: it had been in force before that.
	Again bool `json:"again,omitempty"`
	// Change is what differs from the revision before it.
	Change string `json:"change,omitempty"`
	// Digests: its values were not kept.
	Digests bool `json:"digestsOnly,omitempty"`

	Recorded platform.Recorded `json:"-"`
	// first is when it was recorded first.
	first time.Time
}

// Title is for people: revision 8 (v1-a0713f9c).
func (r Revision) Title() string { return title(r.Number, r.Hash) }

func title(number int64, hash string) string {
	switch {
	case hash == "":
		return "an unknown revision"
	case number == 0:
		return "a revision without a number (" + Short(hash) + ")"
	}
	return fmt.Sprintf("revision %d (%s)", number, Short(hash))
}

// shortHash is how many hex digits of a hash are shown. What is left selects
// nothing by itself, but finds the rest in any listing.
const shortHash = 8

// Short cuts a template-spec-hash for a table.
func Short(hash string) string {
	for i := range hash {
		if hash[i] == '-' {
			return hash[:min(len(hash), i+1+shortHash)]
		}
	}
	return hash
}

// Revisions returns the recorded revisions of a template, the oldest first.
func (c *Cluster) Revisions(ctx context.Context, s *Store, template *unstructured.Unstructured) ([]Revision, error) {
	live, err := c.renderOf(template)
	if err != nil {
		return nil, err
	}
	var out []Revision
	for _, cr := range s.recorded().all() {
		if owner := metav1.GetControllerOf(&cr); owner == nil || owner.UID != template.GetUID() {
			continue
		}
		one := recorded{func() []appsv1.ControllerRevision { return []appsv1.ControllerRevision{cr} }}
		read, err := c.History(one).Revisions(ctx, template)
		if err != nil {
			return nil, fmt.Errorf("reading revision %s: %w", cr.Name, err)
		}
		r := Revision{Number: cr.Revision, Name: cr.Name, Hash: cr.Labels[settings.StampKey]}
		if len(read) == 1 {
			r.Hash, r.Recorded, r.Digests = read[0].Hash, read[0], read[0].Template == nil
		}
		r.InForce = r.Hash == live.Hash()
		at := lastWritten(&cr)
		r.first = cr.CreationTimestamp.Time
		r.Since, r.Again = metav1.NewTime(at), at.After(r.first)
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b Revision) int { return cmp.Compare(a.Number, b.Number) })
	return out, nil
}

// lastWritten is when a revision was recorded or, as its data never changes,
// when it got a new number because it was in force again.
func lastWritten(cr *appsv1.ControllerRevision) time.Time {
	at := cr.CreationTimestamp.Time
	for _, f := range cr.ManagedFields {
		if f.Time != nil && f.Time.After(at) {
			at = f.Time.Time
		}
	}
	return at
}

// numbers maps the hashes of a template's revisions to their numbers.
func numbers(s *Store, template *unstructured.Unstructured) map[string]int64 {
	out := map[string]int64{}
	for _, cr := range s.recorded().all() {
		if owner := metav1.GetControllerOf(&cr); owner != nil && owner.UID == template.GetUID() {
			out[cr.Labels[settings.StampKey]] = cr.Revision
		}
	}
	return out
}

// numbersFor are numbers, for a pool of that revision: it can say more than the template that
// it refers to, and then it is not of a revision that the template had.
func numbersFor(objects platform.Renderer, s *Store, template *unstructured.Unstructured, inForce string) map[string]int64 {
	out := numbers(s, template)
	if _, is := out[inForce]; is || inForce == "" {
		return out
	}
	if live, err := objects.Render(template); err == nil {
		if n, is := out[live.Hash()]; is {
			out[inForce] = n
		}
	}
	return out
}

func (c *Cluster) renderOf(template *unstructured.Unstructured) (revision.Blueprint, error) {
	b, err := c.Objects.Render(template)
	if err != nil {
		return revision.Blueprint{}, fmt.Errorf("reading template %s: %w", template.GetName(), err)
	}
	return b, nil
}

// Changes says of each revision how it differs from the one before it.
func (c *Cluster) Changes(history []Revision) {
	for i := 1; i < len(history); i++ {
		before, is := history[i-1], &history[i]
		if before.Recorded.Hash == "" || is.Recorded.Hash == "" || before.Digests || is.Digests {
			continue
		}
		is.Change = c.difference(before.Recorded.Template, is.Recorded.Template, before.Recorded.Rendered, is.Recorded.Rendered)
	}
}
