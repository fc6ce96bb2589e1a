package manager

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/freshbind/freshbind/internal/eventnote"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/webhooks"
)

const (
	// unnamedBuffer is how many denials may wait for the name of their claim.
	unnamedBuffer = 256
	// rememberedNames bounds memory; a claim that is tried again is listed once.
	rememberedNames = 1024
)

// claimNames finds the name of the claim that a bare Pod was refused to: v0.2
// writes only its UID onto the Pod. It lists, and so works outside of
// admission, one denial at a time.
type claimNames struct {
	// find returns the name of the claim of that UID; "" when there is none.
	find   func(ctx context.Context, namespace, uid string) (string, error)
	report func(webhooks.Denial)

	hints chan webhooks.Denial
	known *lru.Cache
}

func newClaimNames(find func(ctx context.Context, namespace, uid string) (string, error), report func(webhooks.Denial)) *claimNames {
	return &claimNames{find: find, report: report, hints: make(chan webhooks.Denial, unnamedBuffer), known: lru.New(rememberedNames)}
}

// take returns true when the denial will be reported from here.
func (c *claimNames) take(d webhooks.Denial) bool {
	if d.Operation != freshness.Release || d.Claim.UID == "" || d.Claim.Name != "" {
		return false
	}
	select {
	case c.hints <- withoutContent(d):
		return true
	default:
		return false
	}
}

// withoutContent keeps what a report needs: what waits must not take memory as the
// objects of tenants do.
func withoutContent(d webhooks.Denial) webhooks.Denial {
	judged := d.Judged()
	kept := reference(judged.GroupVersionKind(), judged.GetNamespace(), judged.GetName(), string(judged.GetUID()))
	d.Write = platform.Write{Operation: d.Operation, Old: kept, Claim: d.Claim}
	d.Detail = eventnote.Truncate(d.Detail)
	return d
}

// Start reports what was taken, until ctx ends.
func (c *claimNames) Start(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case d := <-c.hints:
			d.Claim.Name = c.nameOf(ctx, d.Judged().GetNamespace(), d.Claim.UID)
			c.report(d)
		}
	}
}

// NeedLeaderElection is false: every replica refuses.
func (*claimNames) NeedLeaderElection() bool { return false }

// nameOf returns "" for a claim that is gone, or that cannot be found out: its
// pool is told all the same.
func (c *claimNames) nameOf(ctx context.Context, namespace, uid string) string {
	key := namespace + "/" + uid
	if name, ok := c.known.Get(key); ok {
		return name.(string)
	}
	name, err := c.find(ctx, namespace, uid)
	if err != nil {
		logf.FromContext(ctx).Error(err, "Cannot find the name of a refused claim: only its pool gets an event", "claimUID", uid)
		return ""
	}
	if name != "" {
		c.known.Add(key, name)
	}
	return name
}

// findClaim lists the metadata of a namespace's claims.
func findClaim(r client.Reader, claims schema.GroupVersionKind) func(ctx context.Context, namespace, uid string) (string, error) {
	return func(ctx context.Context, namespace, uid string) (string, error) {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(claims.GroupVersion().WithKind(claims.Kind + "List"))
		if err := r.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return "", fmt.Errorf("listing the claims of %s: %w", namespace, err)
		}
		for i := range list.Items {
			if string(list.Items[i].UID) == uid {
				return list.Items[i].Name, nil
			}
		}
		return "", nil
	}
}
