package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

const (
	// hostileUser may do in its namespaces what the owner of an application may, and
	// more: it writes sandboxes themselves.
	hostileUser = "hostile"
	// hostileSize is how many members its pools want.
	hostileSize = 4
	// harvest is how many claims come after an attack: they want every member.
	harvest = hostileSize
)

var hostileRules = []rbacv1.PolicyRule{
	{APIGroups: []string{""}, Resources: []string{"pods", "pods/ephemeralcontainers"}, Verbs: []string{"*"}},
	{APIGroups: []string{"agents.x-k8s.io", "extensions.agents.x-k8s.io"}, Resources: []string{"*"}, Verbs: []string{"*"}},
}

// raided is an attack that is over.
type raided struct {
	raid
	namespace    string
	began, ended time.Time
}

func (r raided) during(t time.Time) bool { return !t.Before(r.began) && !t.After(r.ended) }

// tenant is the hostile one in one of its namespaces.
type tenant struct {
	*runner
	pool
	// spare is a pool without members, of the same template.
	spare scenario.Pool
	pods  corev1.PodInterface
	// flood is where nothing is enforced.
	flood *scenario.Namespace
	// now is what the template asks for.
	now content
	// claims are those of the raid that goes on; made counts all.
	claims []string
	made   int
}

// hostile is the tenant with all its namespaces.
type hostile struct {
	tenants [len(places)]*tenant

	mu     sync.Mutex
	raided []raided
}

func hostileNamespaces(seed uint64) (names [len(places)]string) {
	for i, p := range places {
		names[i] = fmt.Sprintf("storm-%d-hostile-%s", seed, p.how)
	}
	return names
}

// newHostile creates the hostile tenant's pools, which are not yet full.
func (w *world) newHostile(ctx context.Context, seed uint64) (*hostile, error) {
	client, err := kubernetes.NewForConfig(w.hostile)
	if err != nil {
		return nil, fmt.Errorf("make client for the hostile tenant: %w", err)
	}
	flood, err := w.newFlood(ctx, fmt.Sprintf("storm-%d-flood", seed))
	if err != nil {
		return nil, err
	}
	h := &hostile{}
	for i, name := range hostileNamespaces(seed) {
		o := poolOptions{
			namespace: name, labels: places[i].labels, annotations: places[i].pool,
			strategy: scenario.Recreate, size: hostileSize, user: w.hostile,
		}
		p, err := w.newPool(ctx, o)
		if err != nil {
			return nil, err
		}
		spare := p.Pool
		spare.Name, spare.Replicas = "spare", 0
		if err := p.Create(ctx, w.warmPool(o, spare)); err != nil {
			return nil, err
		}
		h.tenants[i] = &tenant{pool: p, spare: spare, pods: client.CoreV1().Pods(name), flood: flood, now: firstContent()}
	}
	return h, nil
}

// runRaids takes all raids, those of one place one after the other: what becomes of a
// claim in a place is the doing of the raid that goes on there.
func (w *runner) runRaids(ctx context.Context, raids [len(places)][]raid) error {
	h := w.hostile
	group, ctx := errgroup.WithContext(ctx)
	for i, t := range h.tenants {
		t.runner = w
		group.Go(func() error {
			for _, r := range raids[i] {
				began := time.Now()
				if err := t.attack(ctx, r); err != nil {
					return fmt.Errorf("attack %s in %s: %w", r.do, t.Namespace.Name, err)
				}
				w.say("attack %s in %s took %s", r.do, t.Namespace.Name, time.Since(began).Round(time.Second))
				h.mu.Lock()
				h.raided = append(h.raided, raided{r, t.Namespace.Name, began, time.Now()})
				h.mu.Unlock()
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	w.say("all %d raids are over", len(h.raided))
	return nil
}

// attack begins when the pool is at rest, and ends when claims that came after it
// have what they get.
func (t *tenant) attack(ctx context.Context, r raid) error {
	t.claims = nil
	members, err := t.WaitPool(ctx, t.Pool, t.now.name(), settleWithin)
	if err != nil {
		return err
	}
	slices.SortFunc(members, func(a, b scenario.Member) int { return cmp.Compare(a.Name, b.Name) })
	if err := ways[r.do](t, ctx, members[:1+r.pick%2], r.pick/2); err != nil {
		return err
	}
	names := t.names(harvest)
	if err := t.CreateClaims(ctx, t.Pool, names...); err != nil {
		return err
	}
	if err := t.WaitClaims(ctx, settleWithin, names...); err != nil {
		return err
	}
	return t.DeleteClaims(ctx, t.claims...)
}

// names are those of claims that go when the raid is over.
func (t *tenant) names(count int) []string {
	var names []string
	for range count {
		t.made++
		names = append(names, fmt.Sprintf("h%d", t.made))
	}
	t.claims = append(t.claims, names...)
	return names
}

// claim creates one, which names a member unless that is "", and returns it as it is
// stored.
func (t *tenant) claim(ctx context.Context, p scenario.Pool, member string) (*unstructured.Unstructured, error) {
	claim := builders.ClaimFrom(t.Claim(p, t.names(1)[0]))
	if member != "" {
		claim.Names(member)
	}
	stored, err := t.Resource(upstream.SandboxClaims).Create(ctx, claim.Obj(), metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("create claim: %w", err)
	}
	return stored, nil
}

// renew changes the template, and returns it as it was.
func (t *tenant) renew(ctx context.Context) (before *unstructured.Unstructured, err error) {
	before, err = t.Resource(upstream.SandboxTemplates).Get(ctx, t.Template, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("get template: %w", err)
	}
	t.now = content{image: t.now.image%3 + 1}
	return before, t.update(ctx, t.pool, t.now)
}

// tried passes over what the API server says to a write that nobody should make:
// the audit log has it. No answer at all is an error.
func tried(err error) error {
	var answer apierrors.APIStatus
	if errors.As(err, &answer) {
		return nil
	}
	return err
}
