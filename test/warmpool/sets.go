package warmpool

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/test/fakekruise"
	"github.com/freshbind/freshbind/test/scenario"
)

// claimTimeout is longer than anybody here waits: when it is over, a SandboxClaim is
// never served.
const claimTimeout = "1h"

// SetPool is a SandboxSet. Every second claim on it is a request of a user of E2B, who
// has no object.
type SetPool struct {
	*Kruise
	client dynamic.Interface
	in     string
	size   int
	// refers: members name a template.
	refers bool
	// beside has something go on until the storm ends.
	beside func(func(context.Context))

	mu    sync.Mutex
	users map[string]*e2bUser
}

// Resource is one of the namespace.
func (p *SetPool) Resource(r schema.GroupVersionResource) dynamic.ResourceInterface {
	return p.client.Resource(r).Namespace(p.in)
}

func (p *SetPool) create(ctx context.Context, r schema.GroupVersionResource, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	stored, err := p.Resource(r).Create(ctx, obj, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("create %s %s/%s: %w", obj.GetKind(), p.in, obj.GetName(), err)
	}
	return stored, nil
}

// newClaim is for a member, or for what is created where there is none and what it is built
// from can be seen.
func (p *SetPool) newClaim(name string) *unstructured.Unstructured {
	spec := map[string]any{"templateName": PoolName, "replicas": int64(1), "claimTimeout": claimTimeout}
	if p.refers {
		spec["createOnNoStock"] = false
	}
	return NewObject("SandboxClaim", p.in, name, spec)
}

// request is the same of a user of E2B.
func (p *SetPool) request(user string) fakekruise.Request {
	return fakekruise.Request{Namespace: p.in, Set: PoolName, User: user, OnlyStock: p.refers}
}

// waitGuarded waits until what Freshbind always denies is denied: a cold start for a
// claim that does not exist.
func (p *SetPool) waitGuarded(ctx context.Context) error {
	cold := NewObject("Sandbox", p.in, "probe", map[string]any{"template": map[string]any{}})
	cold.SetLabels(map[string]string{LabelClaimed: "true", LabelClaim: "nobody", fakekruise.Group + "/sandbox-pool": PoolName})
	cold.SetAnnotations(map[string]string{KeyOwner: "nobody"})
	var last error
	err := scenario.Poll(ctx, within, func(ctx context.Context) (bool, error) {
		_, last = p.Sandboxes().Create(ctx, cold, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return last != nil && strings.Contains(last.Error(), string(freshness.ClaimGone)), nil
	})
	if err != nil {
		return fmt.Errorf("wait for webhooks in force in %s: %w", p.in, errors.Join(err, last))
	}
	return nil
}

// In is the namespace.
func (p *SetPool) In() string { return p.in }

// BuiltFrom is the SandboxSet itself, or what it refers to.
func (p *SetPool) BuiltFrom() (dynamic.ResourceInterface, string) {
	if p.refers {
		return p.Resource(fakekruise.Templates), PoolName
	}
	return p.Itself()
}

// Itself is the SandboxSet.
func (p *SetPool) Itself() (dynamic.ResourceInterface, string) {
	return p.Resource(fakekruise.Sets), PoolName
}

// Sandboxes are those of the namespace.
func (p *SetPool) Sandboxes() dynamic.ResourceInterface { return p.Resource(fakekruise.Sandboxes) }

// Rest waits for members that can be given away.
func (p *SetPool) Rest(ctx context.Context, image string, within time.Duration) ([]scenario.Member, error) {
	return scenario.WaitRest(ctx, p.in+"/"+PoolName, p.Idle, p.size, image, within)
}

// Idle are the members.
func (p *SetPool) Idle(ctx context.Context) ([]scenario.Member, error) {
	list, err := p.Sandboxes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list sandboxes of %s: %w", p.in, err)
	}
	images, err := p.podImages(ctx)
	if err != nil {
		return nil, err
	}
	var members []scenario.Member
	for i := range list.Items {
		if OfPool(&list.Items[i]) {
			m := memberOf(&list.Items[i])
			if p.refers {
				m.Image = images[m.Name]
			}
			members = append(members, m)
		}
	}
	return members, nil
}

// podImages are what Pods run, by name, where their Sandboxes do not say so.
func (p *SetPool) podImages(ctx context.Context) (map[string]string, error) {
	if !p.refers {
		return nil, nil
	}
	list, err := p.Resource(corev1.SchemeGroupVersion.WithResource("pods")).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list pods of %s: %w", p.in, err)
	}
	images := map[string]string{}
	for i := range list.Items {
		images[list.Items[i].GetName()] = firstImage(&list.Items[i], "spec")
	}
	return images, nil
}

// Claims are SandboxClaims, and requests of users of E2B.
func (p *SetPool) Claims(ctx context.Context, names ...string) error {
	var group errgroup.Group
	for _, name := range names {
		if byE2B(name) {
			p.mu.Lock()
			p.users[name] = &e2bUser{}
			p.mu.Unlock()
			p.beside(func(ctx context.Context) { p.visit(ctx, name) })
			continue
		}
		group.Go(func() error {
			_, err := p.create(ctx, fakekruise.Claims, p.newClaim(name))
			return err
		})
	}
	return group.Wait()
}

// Drop ends both, with what they have.
func (p *SetPool) Drop(ctx context.Context, names ...string) error {
	for _, name := range names {
		if byE2B(name) {
			p.dropUser(name)
			continue
		}
		claim, err := p.Resource(fakekruise.Claims).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err == nil {
			err = p.Resource(fakekruise.Claims).Delete(ctx, name, metav1.DeleteOptions{})
		}
		if err != nil {
			return fmt.Errorf("delete claim %s/%s: %w", p.in, name, err)
		}
		if err := p.dropSandboxes(ctx, string(claim.GetUID())); err != nil {
			return err
		}
	}
	return nil
}

// dropSandboxes deletes what a SandboxClaim has: nobody else does.
func (p *SetPool) dropSandboxes(ctx context.Context, owner string) error {
	boxes, err := p.of(ctx, owner)
	if err != nil {
		return err
	}
	for i := range boxes {
		uid := boxes[i].GetUID()
		err := p.Sandboxes().Delete(ctx, boxes[i].GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("delete sandbox %s/%s: %w", p.in, boxes[i].GetName(), err)
		}
	}
	return nil
}

// of are the Sandboxes that somebody has.
func (p *SetPool) of(ctx context.Context, owner string) ([]unstructured.Unstructured, error) {
	list, err := p.Sandboxes().List(ctx, metav1.ListOptions{LabelSelector: LabelClaimed + "=true"})
	if err != nil {
		return nil, fmt.Errorf("list sandboxes of %s: %w", p.in, err)
	}
	var out []unstructured.Unstructured
	for i := range list.Items {
		if list.Items[i].GetAnnotations()[KeyOwner] == owner {
			out = append(out, list.Items[i])
		}
	}
	return out, nil
}

// Served waits for both.
func (p *SetPool) Served(ctx context.Context, within time.Duration, names ...string) error {
	var unready []scenario.UnreadyClaim
	err := scenario.Poll(ctx, within, func(ctx context.Context) (bool, error) {
		var err error
		unready, err = p.unserved(ctx, names)
		return len(unready) == 0, err
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return &scenario.UnreadyError{Namespace: p.in, Waited: len(names), Within: within, Claims: unready}
	}
	return err
}

func (p *SetPool) unserved(ctx context.Context, names []string) ([]scenario.UnreadyClaim, error) {
	list, err := p.Resource(fakekruise.Claims).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list claims of %s: %w", p.in, err)
	}
	messages, has := map[string]string{}, map[string]bool{}
	for i := range list.Items {
		count, _, _ := unstructured.NestedInt64(list.Items[i].Object, "status", "claimedReplicas")
		phase, _, _ := unstructured.NestedString(list.Items[i].Object, "status", "phase")
		message, _, _ := unstructured.NestedString(list.Items[i].Object, "status", "message")
		messages[list.Items[i].GetName()] = phase + ": " + message
		has[list.Items[i].GetName()] = count > 0 && phase == "Completed"
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, u := range p.users {
		has[name], messages[name] = u.served, fmt.Sprint(u.err)
	}
	var unready []scenario.UnreadyClaim
	for _, name := range names {
		if !has[name] {
			unready = append(unready, scenario.UnreadyClaim{Name: name, Reason: "NotServed", Message: messages[name]})
		}
	}
	return unready, nil
}

// Unserved looks for them as users of E2B, and then as SandboxClaims: each passes over what
// it was refused.
func (p *SetPool) Unserved(ctx context.Context) (scenario.Probe, error) {
	p.probed.Store(true)
	defer p.probed.Store(false)
	var all scenario.Probe
	for _, as := range []struct {
		prefix string
		take   func(context.Context, []string) (int, error)
	}{{"probe-e2b-", p.takeByE2B}, {"probe-claim-", p.takeByClaims}} {
		one, err := scenario.Drained{
			Replicas: p.size, Members: p.Idle, Take: as.take, Duration: askedAgain,
			Rest: func(ctx context.Context, within time.Duration) ([]scenario.Member, error) {
				return p.Rest(ctx, "", within)
			},
		}.Ghosts(ctx, as.prefix)
		all.Members, all.Claims, all.Cold = all.Members+one.Members, all.Claims+one.Claims, all.Cold+one.Cold
		all.Ghosts = append(all.Ghosts, one.Ghosts...)
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

func (p *SetPool) takeByClaims(ctx context.Context, names []string) (cold int, err error) {
	uids := make([]types.UID, len(names))
	var group errgroup.Group
	for i, name := range names {
		group.Go(func() error {
			claim, err := p.create(ctx, fakekruise.Claims, p.newClaim(name))
			if err == nil {
				uids[i] = claim.GetUID()
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return 0, err
	}
	if err := p.Served(ctx, within, names...); err != nil {
		return 0, err
	}
	for _, uid := range uids {
		boxes, err := p.of(ctx, string(uid))
		if err != nil {
			return cold, err
		}
		if len(boxes) == 1 && boxes[0].GetLabels()[labelHash] == "" {
			cold++
		}
	}
	return cold, nil
}
