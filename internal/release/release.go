// Package release undoes what Freshbind has done to pools, members and claims,
// for whoever takes it out of a cluster. All of it can be done again: what is
// released already is left alone.
package release

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
)

const (
	// pageSize bounds how many objects are in memory at once.
	pageSize = 500
	// writesAtOnce bounds what the API server is asked for at one time.
	writesAtOnce = 16
	// rounds is how often members are looked at that others write to meanwhile.
	rounds = 10
	// failuresKept bounds how many failures are told one by one.
	failuresKept = 20
)

// Kinds are the served versions of what is released; empty for what is not
// served.
type Kinds struct{ Sandboxes, Claims, Pools schema.GroupVersionKind }

// Objects is what has to be known of the platform's objects.
type Objects interface {
	platform.Visibility
	platform.Describer
}

// Platform is a warm-pool system.
type Platform struct {
	Objects Objects
	Kinds   Kinds
}

// Releaser has what a release needs.
type Releaser struct {
	Client    client.Client
	Platforms []Platform
	// Silent sends no write; Options are for each that is sent.
	Silent  bool
	Options []client.PatchOption

	mu     sync.Mutex
	report Report
	pools  map[types.UID]*Pool
	// offered are the members that were shown, which offers them.
	offered map[types.UID]bool
}

// platformRelease is the part of a release that is about one platform.
type platformRelease struct {
	*Releaser
	Platform
}

// Pool is what was done to the members of a pool.
type Pool struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Shown were hidden from claims. Offered were shown, and are put before the
	// claim controller once more: it forgets a member that it was refused.
	Shown   int `json:"shown"`
	Offered int `json:"offered"`
	// marked pools are those whose rollouts Freshbind looks after.
	marked bool
}

// Report is what was done, and what was not.
type Report struct {
	Pools []*Pool `json:"pools"`
	// Unmarked counts the objects that marks were removed from, by KIND.GROUP.
	Unmarked map[string]int `json:"unmarked"`
	// Failures are the first of those that the API server refused; Failed counts
	// them all.
	Failures []string `json:"failures,omitempty"`
	Failed   int      `json:"failed"`
	// Left is what stays, in words.
	Left []string `json:"left"`
}

// Shown counts the members that were shown again.
func (r *Report) Shown() (n int) {
	for _, p := range r.Pools {
		n += p.Shown
	}
	return n
}

// Run releases namespaces, "" for all. Hidden members come first: that is what
// claims miss, and no policy of Freshbind's is in the way of it. What fails for one platform
// holds up no other. The report tells what was done until an error, too.
func (r *Releaser) Run(ctx context.Context, namespaces ...string) (Report, error) {
	err := r.take(ctx, namespaces, platformRelease.readPools, platformRelease.showMembers,
		platformRelease.unmarkSandboxes, platformRelease.unmarkClaims, platformRelease.unmarkPools)
	for _, namespace := range namespaces {
		err = errors.Join(err, r.unmarkPods(ctx, namespace))
	}
	if err != nil {
		return r.report, err
	}
	return r.report, r.left(ctx, namespaces)
}

// ShowAll shows hidden members, and undoes nothing else.
func (r *Releaser) ShowAll(ctx context.Context, namespaces ...string) (Report, error) {
	err := r.take(ctx, namespaces, platformRelease.showMembers)
	return r.report, err
}

// take takes each step for all platforms before the next. A platform's first error ends its
// steps.
func (r *Releaser) take(ctx context.Context, namespaces []string, steps ...func(platformRelease, context.Context, string) error) error {
	r.report, r.pools, r.offered = Report{Unmarked: map[string]int{}}, map[types.UID]*Pool{}, map[types.UID]bool{}
	errs := make([]error, len(r.Platforms))
	for _, step := range steps {
		for i, p := range r.Platforms {
			for _, namespace := range namespaces {
				if errs[i] == nil {
					errs[i] = step(platformRelease{r, p}, ctx, namespace)
				}
			}
		}
	}
	return errors.Join(errs...)
}

func (r platformRelease) readPools(ctx context.Context, namespace string) error {
	return each(ctx, r.Client, r.Kinds.Pools, partial, func(pool metav1.Object) error {
		p := &Pool{Kind: r.Kinds.Pools.Kind, Namespace: pool.GetNamespace(), Name: pool.GetName(), marked: !outcomesOf(pool).none()}
		r.pools[pool.GetUID()] = p
		if p.marked {
			r.report.Pools = append(r.report.Pools, p)
		}
		return nil
	}, client.InNamespace(namespace))
}

// poolOf may be a pool that is new, or gone already. The lock is held.
func (r platformRelease) poolOf(uid types.UID, member *unstructured.Unstructured) *Pool {
	p := r.pools[uid]
	if p == nil {
		p = &Pool{Kind: r.Kinds.Pools.Kind, Namespace: member.GetNamespace(), Name: r.Objects.DescribeMember(member).Controller.Name}
		r.pools[uid] = p
	}
	if !p.marked {
		p.marked = true
		r.report.Pools = append(r.report.Pools, p)
	}
	return p
}

// showMembers goes on until no hidden member is left: others may have written to
// one between the list and the patch.
func (r platformRelease) showMembers(ctx context.Context, namespace string) error {
	for range rounds {
		again, err := r.showOnce(ctx, namespace)
		if err != nil || !again || r.Silent {
			return err
		}
	}
	r.report.Failed++
	r.report.Failures = append(r.report.Failures, fmt.Sprintf("others write to hidden members all the time, given up after %d rounds: run this again", rounds))
	return nil
}

func (r platformRelease) showOnce(ctx context.Context, namespace string) (again bool, err error) {
	err = r.sandboxes(ctx, namespace, func(ctx context.Context, sandbox *unstructured.Unstructured) error {
		is, pool := r.stateOf(sandbox)
		if is != hidden {
			return nil
		}
		done, err := r.patch(ctx, sandbox, r.Objects.Show(sandbox))
		r.mu.Lock()
		defer r.mu.Unlock()
		switch {
		case done:
			r.poolOf(pool, sandbox).Shown++
			r.offered[sandbox.GetUID()] = true
		case apierrors.IsConflict(err):
			again = true
		case err != nil:
			return r.fail(ctx, "showing member", sandbox, err)
		}
		return nil
	})
	return again, err
}

// unmarkSandboxes removes what is left of marks, and offers members of pools
// that Freshbind looked after.
func (r platformRelease) unmarkSandboxes(ctx context.Context, namespace string) error {
	return r.sandboxes(ctx, namespace, func(ctx context.Context, sandbox *unstructured.Unstructured) error {
		is, pool := r.stateOf(sandbox)
		// A merge patch leaves the new version in what it is given.
		if err := r.unmark(ctx, sandbox, marksOf(sandbox)); err != nil {
			return err
		}
		r.mu.Lock()
		p, done := r.pools[pool], r.offered[sandbox.GetUID()]
		r.mu.Unlock()
		if is != shownReady || done || p == nil || !p.marked {
			return nil
		}
		offered, err := r.offer(ctx, sandbox)
		r.mu.Lock()
		defer r.mu.Unlock()
		switch {
		case offered:
			p.Offered++
		case err != nil && !apierrors.IsConflict(err):
			return r.fail(ctx, "offering member", sandbox, err)
		}
		return nil
	})
}

// offer puts a member that is shown before the claim controller. One that others
// write to meanwhile has been, as that is what makes it look.
func (r platformRelease) offer(ctx context.Context, member *unstructured.Unstructured) (bool, error) {
	patch, ok := r.Objects.Offer(member)
	if !ok {
		if done, err := r.patch(ctx, member, r.Objects.Hide(member)); !done {
			return false, err
		}
		return r.patch(ctx, member, r.Objects.Show(member))
	}
	if r.Silent {
		return true, nil
	}
	options := []client.SubResourcePatchOption{}
	for _, o := range r.Options {
		if both, is := o.(client.SubResourcePatchOption); is {
			options = append(options, both)
		}
	}
	err := r.Client.Status().Patch(ctx, member, client.RawPatch(types.MergePatchType, patch), options...)
	return err == nil, client.IgnoreNotFound(err)
}

func (r platformRelease) unmarkClaims(ctx context.Context, namespace string) error {
	return r.unmarkAll(ctx, r.Kinds.Claims, marksOf, client.InNamespace(namespace))
}

// unmarkPools comes once nothing else is left to do for a platform: the marks of pools tell
// a release that was interrupted where to go on.
func (r platformRelease) unmarkPools(ctx context.Context, namespace string) error {
	return r.unmarkAll(ctx, r.Kinds.Pools, outcomesOf, client.InNamespace(namespace))
}

// unmarkPods is for those of all platforms, and of none that is served any more.
func (r *Releaser) unmarkPods(ctx context.Context, namespace string) error {
	pods := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	return r.unmarkAll(ctx, pods, marksOf, client.InNamespace(namespace), client.HasLabels{settings.StampKey})
}

func (r *Releaser) unmarkAll(ctx context.Context, kind schema.GroupVersionKind, marks func(metav1.Object) marks, options ...client.ListOption) error {
	return r.page(ctx, kind, partial, func(ctx context.Context, obj client.Object) error {
		return r.unmark(ctx, obj, marks(obj))
	}, options...)
}

func (r *Releaser) unmark(ctx context.Context, obj client.Object, m marks) error {
	if m.none() {
		return nil
	}
	kind := obj.GetObjectKind().GroupVersionKind().GroupKind()
	patch, err := m.unmark(obj)
	if err != nil {
		return err
	}
	done, err := r.patch(ctx, obj, patch)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case done:
		r.report.Unmarked[kind.String()]++
	case err != nil && !apierrors.IsConflict(err):
		return r.fail(ctx, "removing marks from "+kind.Kind, obj, err)
	}
	return nil
}

// patch reports whether the object was written to. One that is gone needs
// nothing any more; a conflict says that it is another one by now.
func (r *Releaser) patch(ctx context.Context, obj client.Object, patch []byte) (bool, error) {
	if r.Silent {
		return true, nil
	}
	err := r.Client.Patch(ctx, obj, client.RawPatch(types.MergePatchType, patch), r.Options...)
	return err == nil, client.IgnoreNotFound(err)
}

// fail notes what the API server refused about one object, and returns what ends
// everything. The lock is held.
func (r *Releaser) fail(ctx context.Context, doing string, obj client.Object, err error) error {
	err = fmt.Errorf("%s %s/%s: %w", doing, obj.GetNamespace(), obj.GetName(), err)
	var status apierrors.APIStatus
	if ctx.Err() != nil || !errors.As(err, &status) {
		return err
	}
	if r.report.Failed++; len(r.report.Failures) < failuresKept {
		r.report.Failures = append(r.report.Failures, err.Error())
	}
	return nil
}

func (r platformRelease) sandboxes(ctx context.Context, namespace string, do func(context.Context, *unstructured.Unstructured) error) error {
	return r.page(ctx, r.Kinds.Sandboxes, whole, func(ctx context.Context, obj client.Object) error {
		return do(ctx, obj.(*unstructured.Unstructured))
	}, client.InNamespace(namespace))
}

// page does something to each object of a list, several at a time.
func (r *Releaser) page(
	ctx context.Context, kind schema.GroupVersionKind, as form, do func(context.Context, client.Object) error, options ...client.ListOption,
) error {
	return pages(ctx, r.Client, kind, as, func(objects []client.Object) error {
		g, ctx := errgroup.WithContext(ctx)
		g.SetLimit(writesAtOnce)
		for _, obj := range objects {
			g.Go(func() error { return do(ctx, obj) })
		}
		return g.Wait()
	}, options...)
}
