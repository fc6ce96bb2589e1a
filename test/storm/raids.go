package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"

	"github.com/freshbind/freshbind/internal/revision"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
	"github.com/freshbind/freshbind/test/warmpool"
)

const (
	oddImage = "sandbox:odd"
	// A flood is so many writes of each kind: of large templates, and of lists of paths
	// as long as Freshbind reads, or as an annotation may be.
	floodWrites, floodVariables, floodPaths = 4, 1000, 4000
	// meanwhile is how long a planted Pod stands in a claim's way, at most.
	meanwhile = 2 * time.Second
)

// disguised is an owner that upstream takes for the claim: it compares UIDs only.
func disguised(claim *unstructured.Unstructured, pick uint64) metav1.OwnerReference {
	ref := builders.ControllerRef(claim)
	switch pick % 3 {
	case 0:
		ref.APIVersion, ref.Kind = "example.com/v1", "Nobody"
	case 1:
		ref.APIVersion, _, _ = strings.Cut(ref.APIVersion, "/")
	case 2:
		ref.APIVersion, ref.Kind = "batch/v1", "Job"
	}
	return ref
}

// claim creates one, which names a member unless that is "", and returns it as it is
// stored.
func (t *sandboxTenant) claim(ctx context.Context, p scenario.Pool, member string) (*unstructured.Unstructured, error) {
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

// renewed changes the template, and returns it as it was.
func (t *sandboxTenant) renewed(ctx context.Context) (before *unstructured.Unstructured, err error) {
	before, err = t.Resource(upstream.SandboxTemplates).Get(ctx, t.Template, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("get template: %w", err)
	}
	return before, t.renew(ctx)
}

func (t *sandboxTenant) disguise(ctx context.Context, members []scenario.Member, pick uint64) error {
	if err := t.renew(ctx); err != nil {
		return err
	}
	claim, err := t.claim(ctx, t.Pool, "")
	if err != nil {
		return err
	}
	for _, m := range members {
		if err := t.own(ctx, m.Name, nil, disguised(claim, pick)); err != nil {
			return err
		}
		if err := t.own(ctx, m.Name, nil, builders.ControllerRef(claim)); err != nil {
			return err
		}
	}
	return nil
}

func (t *sandboxTenant) disguisedBirth(ctx context.Context, _ []scenario.Member, pick uint64) error {
	before, err := t.renewed(ctx)
	if err != nil {
		return err
	}
	claim, err := t.claim(ctx, t.spare, "")
	if err != nil {
		return err
	}
	return t.bear(ctx, claim, before, disguised(claim, pick))
}

// twoClaims has the plain owner ask for the member, and the controller for another
// pool.
func (t *sandboxTenant) twoClaims(ctx context.Context, members []scenario.Member, _ uint64) error {
	plain, err := t.claim(ctx, t.Pool, members[0].Name)
	if err != nil {
		return err
	}
	controller, err := t.claim(ctx, t.spare, "")
	if err != nil {
		return err
	}
	return t.own(ctx, members[0].Name, nil, plainRef(plain), builders.ControllerRef(controller))
}

func (t *sandboxTenant) twoClaimsBirth(ctx context.Context, _ []scenario.Member, pick uint64) error {
	template, err := t.Resource(upstream.SandboxTemplates).Get(ctx, t.Template, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get template: %w", err)
	}
	var claims []*unstructured.Unstructured
	for range 2 {
		claim, err := t.claim(ctx, t.spare, "")
		if err != nil {
			return err
		}
		claims = append(claims, claim)
	}
	first := claims[pick%2]
	return t.bear(ctx, first, template, plainRef(claims[0]), builders.ControllerRef(claims[1]))
}

func plainRef(claim *unstructured.Unstructured) metav1.OwnerReference {
	ref := builders.ControllerRef(claim)
	ref.Controller = nil
	return ref
}

func (t *sandboxTenant) byHand(ctx context.Context, members []scenario.Member, _ uint64) error {
	if err := t.renew(ctx); err != nil {
		return err
	}
	for _, m := range members {
		claim, err := t.claim(ctx, t.Pool, m.Name)
		if err != nil {
			return err
		}
		if err := t.own(ctx, m.Name, nil, builders.ControllerRef(claim)); err != nil {
			return err
		}
	}
	return nil
}

// floods writes as an ordinary tenant could, where nothing is enforced.
func (t *sandboxTenant) floods(ctx context.Context, _ []scenario.Member, pick uint64) error {
	template := builders.MakeTemplate(t.flood.Name, t.Template).APIVersion(t.Version).Env(manyVariables()...).Obj()
	claim := t.flood.Claim(t.spare, "flood")
	claim.SetUID("flood")
	for i := range floodWrites {
		write := metav1.PatchOptions{}
		annotate := fmt.Sprintf(`{"metadata":{"annotations":{"storm":"%d-%d"}}}`, pick, i)
		_, err := t.flood.Resource(upstream.SandboxTemplates).Patch(ctx, t.Template, types.MergePatchType, []byte(annotate), write)
		if err := tried(err); err != nil {
			return err
		}
		count := floodPaths
		if i%2 == 0 {
			count = revision.MaxPaths
		}
		list := strings.Repeat(fmt.Sprintf("podTemplate.spec.containers[name=c].env[name=V%d],", i), count)
		paths := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, settings.InjectedPathsKey, list)
		_, err = t.flood.Resource(upstream.SandboxWarmPools).Patch(ctx, t.spare.Name, types.MergePatchType, []byte(paths), write)
		if err := tried(err); err != nil {
			return err
		}
		cold := builders.MakeColdStart(claim, template).Obj()
		_, err = t.flood.Resource(upstream.Sandboxes).Create(ctx, cold, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err := tried(err); err != nil {
			return err
		}
	}
	return nil
}

func manyVariables() []string {
	var pairs []string
	for i := range floodVariables {
		pairs = append(pairs, fmt.Sprintf("V%05d", i), strings.Repeat("x", 150))
	}
	return pairs
}

// podAgain is fast, or upstream's controller is first.
func (t *sandboxTenant) podAgain(ctx context.Context, _ []scenario.Member, pick uint64) error {
	before, err := t.renewed(ctx)
	if err != nil {
		return err
	}
	members, err := t.WaitPool(ctx, t.Pool, t.now.name(), settleWithin)
	if err != nil {
		return err
	}
	for _, m := range members[:1+pick%2] {
		sandbox, err := t.Resource(upstream.Sandboxes).Get(ctx, m.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("get sandbox: %w", err)
		}
		pod, err := typedPod(builders.MakePod(builders.SandboxFrom(sandbox).Image(scenario.ImageOf(before)).Obj()).Obj())
		if err != nil {
			return err
		}
		if err := tried(t.pods.Delete(ctx, m.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})); err != nil {
			return err
		}
		_, err = t.pods.Create(ctx, pod, metav1.CreateOptions{})
		if err := tried(err); err != nil {
			return err
		}
	}
	return nil
}

func typedPod(u *unstructured.Unstructured) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, pod); err != nil {
		return nil, fmt.Errorf("make pod: %w", err)
	}
	pod.UID, pod.ResourceVersion = "", ""
	return pod, nil
}

func (t *sandboxTenant) plant(ctx context.Context, _ []scenario.Member, pick uint64) error {
	name := t.names(1)[0]
	_, err := t.pods.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{builders.LabelNameHash: builders.NameHash(name)}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: oddImage}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("plant pod: %w", err)
	}
	if err := t.CreateClaims(ctx, t.spare, name); err != nil {
		return err
	}
	if err := scenario.Pause(ctx, meanwhile/2+time.Duration(pick%1000)*meanwhile/2000); err != nil {
		return err
	}
	if err := tried(t.pods.Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})); err != nil {
		return err
	}
	return t.WaitClaims(ctx, settleWithin, name)
}

func (t *sandboxTenant) reuse(ctx context.Context, members []scenario.Member, _ uint64) error {
	return t.putBack(ctx, members[0], func(used string, labels map[string]any, pool metav1.OwnerReference) error {
		return t.own(ctx, used, labels, pool)
	})
}

func (t *sandboxTenant) reuseInTwo(ctx context.Context, members []scenario.Member, pick uint64) error {
	return t.putBack(ctx, members[0], func(used string, labels map[string]any, pool metav1.OwnerReference) error {
		if pick%2 == 0 {
			// By then, Freshbind may have marked it.
			if err := scenario.Pause(ctx, meanwhile/4); err != nil {
				return err
			}
		}
		if err := t.own(ctx, used, labels); err != nil {
			return err
		}
		return t.own(ctx, used, labels, pool)
	})
}

// putBack has a claim use a sandbox, which by then should look like a member.
func (t *sandboxTenant) putBack(ctx context.Context, like scenario.Member, put func(used string, labels map[string]any, pool metav1.OwnerReference) error) error {
	model, err := t.Resource(upstream.Sandboxes).Get(ctx, like.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get sandbox: %w", err)
	}
	claim, err := t.claim(ctx, t.Pool, "")
	if err != nil {
		return err
	}
	if err := t.WaitClaims(ctx, settleWithin, claim.GetName()); err != nil {
		return err
	}
	used, err := t.SandboxOf(ctx, claim.GetName())
	if err != nil {
		return err
	}
	pool, err := t.Resource(upstream.SandboxWarmPools).Get(ctx, t.Pool.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get pool: %w", err)
	}
	labels := map[string]any{builders.LabelClaimUID: nil}
	for key, value := range model.GetLabels() {
		// Freshbind's own are refused by themselves.
		if !strings.HasPrefix(key, settings.Prefix) {
			labels[key] = value
		}
	}
	return put(used.GetName(), labels, builders.ControllerRef(pool))
}

// own tries to give a sandbox owners and, where there are labels, to have nothing
// say whose it was.
func (t *sandboxTenant) own(ctx context.Context, sandbox string, labels map[string]any, owners ...metav1.OwnerReference) error {
	meta := map[string]any{"ownerReferences": owners}
	object := map[string]any{"metadata": meta}
	if labels != nil {
		meta["labels"], meta["annotations"] = labels, map[string]any{settings.BoundToKey: nil}
		object["spec"] = map[string]any{"podTemplate": map[string]any{"metadata": map[string]any{"labels": labels}}}
	}
	patch, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("make patch: %w", err)
	}
	_, err = t.Resource(upstream.Sandboxes).Patch(ctx, sandbox, types.MergePatchType, patch, metav1.PatchOptions{})
	return tried(err)
}

// bear tries to create a sandbox as if for the claim, with other owners.
func (t *sandboxTenant) bear(ctx context.Context, claim, template *unstructured.Unstructured, owners ...metav1.OwnerReference) error {
	sandbox := builders.MakeColdStart(claim, template).Owners(owners...).Obj()
	sandbox.SetUID("")
	_, err := t.Resource(upstream.Sandboxes).Create(ctx, sandbox, metav1.CreateOptions{})
	return tried(err)
}

// newFlood creates where floods go: nothing is enforced there, and no claim waits.
func (a *agentSandbox) newFlood(ctx context.Context, w *world, name string) (*scenario.Namespace, error) {
	o := warmpool.PoolOptions{Namespace: name, Labels: auditing, Strategy: scenario.Recreate, Spec: firstContent().podSpec(), User: w.hostile}
	if err := w.newNamespace(ctx, o); err != nil {
		return nil, err
	}
	p, err := a.CreatePool(ctx, o)
	if err != nil {
		return nil, err
	}
	p.Pool.Name = "spare"
	// Freshbind and agent-sandbox write to it, too.
	err = retry.RetryOnConflict(scenario.Conflicts, func() error {
		large, err := p.Resource(upstream.SandboxTemplates).Get(ctx, p.Template, metav1.GetOptions{})
		if err != nil {
			return err
		}
		_, err = p.Resource(upstream.SandboxTemplates).Update(ctx, builders.TemplateFrom(large).Env(manyVariables()...).Obj(), metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("make template large: %w", err)
	}
	return p.Namespace, p.Create(ctx, a.WarmPool(o, p.Pool))
}
