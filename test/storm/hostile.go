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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/warmpool"
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
	pods corev1.PodInterface
	// attackFuncs are how each attack is made here.
	attackFuncs map[attack]attackFunc
	// now is what the template asks for.
	now content
	// claims are those of the raid that goes on; made counts all.
	claims []string
	made   int
}

// attackFunc is how an attack is made on some members of the pool.
type attackFunc func(ctx context.Context, members []scenario.Member, pick uint64) error

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
func (w *world) newHostile(ctx context.Context, o options) (*hostile, error) {
	h := &hostile{}
	if len(w.attacks(o)) == 0 {
		return h, nil
	}
	client, err := kubernetes.NewForConfig(w.hostile)
	if err != nil {
		return nil, fmt.Errorf("make client for the hostile tenant: %w", err)
	}
	for i, name := range hostileNamespaces(o.seed) {
		p := warmpool.PoolOptions{
			Namespace: name, Labels: places[i].labels, Annotations: places[i].pool,
			Strategy: scenario.Recreate, Size: hostileSize, Spec: firstContent().podSpec(), User: w.hostile,
		}
		if err := w.newNamespace(ctx, p); err != nil {
			return nil, err
		}
		t := &tenant{pods: client.CoreV1().Pods(name), now: firstContent()}
		if t.attackFuncs, err = w.platform.newAttackFuncs(ctx, w, o, p, t); err != nil {
			return nil, err
		}
		h.tenants[i] = t
	}
	return h, nil
}

// runRaids takes all raids, those of one place one after the other: what becomes of a
// claim in a place is the doing of the raid that goes on there.
func (w *runner) runRaids(ctx context.Context, raids [len(places)][]raid) error {
	h := w.hostile
	group, ctx := errgroup.WithContext(ctx)
	for i, t := range h.tenants {
		if len(raids[i]) == 0 {
			continue
		}
		t.runner = w
		group.Go(func() error {
			for _, r := range raids[i] {
				began := time.Now()
				if err := t.attack(ctx, r); err != nil {
					return fmt.Errorf("attack %s in %s: %w", r.do, t.In(), err)
				}
				w.say("attack %s in %s took %s", r.do, t.In(), time.Since(began).Round(time.Second))
				h.mu.Lock()
				h.raided = append(h.raided, raided{r, t.In(), began, time.Now()})
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
	members, err := t.Rest(ctx, t.now.name(), settleWithin)
	if err != nil {
		return err
	}
	slices.SortFunc(members, func(a, b scenario.Member) int { return cmp.Compare(a.Name, b.Name) })
	if err := t.attackFuncs[r.do](ctx, members[:1+r.pick%2], r.pick/2); err != nil {
		return err
	}
	names := t.names(harvest)
	if err := t.Claims(ctx, names...); err != nil {
		return err
	}
	if err := t.Served(ctx, settleWithin, names...); err != nil {
		return err
	}
	return t.Drop(ctx, t.claims...)
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

// renew changes the template.
func (t *tenant) renew(ctx context.Context) error {
	t.now = content{image: t.now.image%3 + 1}
	return t.update(ctx, t.pool, t.now)
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

func (t *tenant) image(ctx context.Context, members []scenario.Member, _ uint64) error {
	return t.patchPods(ctx, members, `{"spec":{"containers":[{"name":"c","image":"`+oddImage+`"}]}}`)
}

func (t *tenant) debug(ctx context.Context, members []scenario.Member, _ uint64) error {
	return t.patchPods(ctx, members,
		`{"spec":{"ephemeralContainers":[{"name":"debugger","image":"busybox","targetContainerName":"c"}]}}`, "ephemeralcontainers")
}

func (t *tenant) patchPods(ctx context.Context, members []scenario.Member, patch string, subresource ...string) error {
	for _, m := range members {
		_, err := t.pods.Patch(ctx, m.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, subresource...)
		if err := tried(err); err != nil {
			return err
		}
	}
	return nil
}
