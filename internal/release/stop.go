package release

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// admissionKinds are what Freshbind may have the API server ask or apply,
// bindings before what they bind.
var admissionKinds = []string{
	"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration",
	"ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "MutatingAdmissionPolicy",
}

// ours are the names that the chart and webhook-config give them. suffixes are those of platforms.
func ours(suffixes []string) *regexp.Regexp {
	var of []string
	for _, suffix := range suffixes {
		of = append(of, regexp.QuoteMeta(suffix))
	}
	return regexp.MustCompile(`^freshbind(-(stamp|born|used|owners|pools|pod-stamp|own-[a-z]+))?(` + strings.Join(of, "|") + `)(-by-pool|-by-floor-[0-9]+)?$`)
}

// Guard takes Freshbind itself out of a cluster.
type Guard struct {
	Client client.Client
	// Silent sends no write; DryRun has those that are sent checked, not stored.
	Silent, DryRun bool
	// Printf is called with each thing that was done, in words.
	Printf func(format string, args ...any)
	// Leases are deleted once nobody renews them.
	Leases []string
	// Suffixes of the names of webhook configurations and policies, as each platform's
	// platform.Admission has it: empty for the one with the plain names.
	Suffixes []string
	// Poll is how often we check whether the Pods are gone, Timeout how long.
	Poll, Timeout time.Duration
}

// Open deletes the webhook configurations and admission policies: from then on
// nothing is refused, and no write waits for a guard that is going away.
func (g *Guard) Open(ctx context.Context) error {
	ours := ours(g.Suffixes)
	for _, name := range admissionKinds {
		kind := schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: name}
		err := each(ctx, g.Client, kind, partial, func(o metav1.Object) error {
			if !ours.MatchString(o.GetName()) {
				return nil
			}
			return g.delete(ctx, o.(client.Object))
		})
		// Mutating policies are served from Kubernetes 1.36 on.
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (g *Guard) delete(ctx context.Context, obj client.Object) error {
	kind, name := obj.GetObjectKind().GroupVersionKind().Kind, obj.GetName()
	if !g.Silent {
		uid := obj.GetUID()
		options := []client.DeleteOption{client.Preconditions{UID: &uid}}
		if g.DryRun {
			options = append(options, client.DryRunAll)
		}
		if err := g.Client.Delete(ctx, obj, options...); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting %s %s: %w", kind, name, err)
		}
	}
	g.Printf("%s %s deleted", kind, name)
	return nil
}

// Stop scales the Deployment to 0 and waits until its Pods are gone, so that
// nobody hides members again. It reports whether they are: a Pod on a node that
// is lost never goes.
func (g *Guard) Stop(ctx context.Context, deployment types.NamespacedName) (gone bool, err error) {
	var d appsv1.Deployment
	err = g.Client.Get(ctx, deployment, &d)
	if apierrors.IsNotFound(err) {
		g.Printf("Deployment %s does not exist", deployment)
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading Deployment %s: %w", deployment, err)
	}
	if !g.Silent {
		scale := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name}}
		options := []client.SubResourceUpdateOption{client.WithSubResourceBody(scale)}
		if g.DryRun {
			options = append(options, client.DryRunAll)
		}
		if err := g.Client.SubResource("scale").Update(ctx, &d, options...); err != nil {
			return false, fmt.Errorf("scaling Deployment %s to 0: %w", deployment, err)
		}
	}
	g.Printf("Deployment %s scaled to 0", deployment)
	if g.Silent || g.DryRun {
		return true, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		return false, fmt.Errorf("reading the selector of Deployment %s: %w", deployment, err)
	}
	err = wait.PollUntilContextTimeout(ctx, g.Poll, g.Timeout, true, func(ctx context.Context) (bool, error) {
		var pods corev1.PodList
		err := g.Client.List(ctx, &pods, client.InNamespace(d.Namespace), client.MatchingLabelsSelector{Selector: selector})
		return err == nil && len(pods.Items) == 0, err
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("waiting for the Pods of Deployment %s: %w", deployment, err)
	}
	return true, g.forget(ctx, d.Namespace)
}

// forget deletes the Leases: without them the next start waits for nobody.
func (g *Guard) forget(ctx context.Context, namespace string) error {
	for _, name := range g.Leases {
		lease := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		lease.SetGroupVersionKind(schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"})
		if err := g.Client.Delete(ctx, lease); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting Lease %s: %w", name, err)
		}
	}
	return nil
}
