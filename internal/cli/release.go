package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/liveread"
	"github.com/freshbind/freshbind/internal/release"
)

// Release undoes what Freshbind has done in namespaces, "" for all. Where the
// warm-pool system is gone there is nothing to undo but what is left is told.
func (c *Cluster) Release(ctx context.Context, dry DryRun, namespaces ...string) (release.Report, error) {
	r := &release.Releaser{Client: c.Client, Objects: c.Objects, Silent: dry == ClientSide, Options: []client.PatchOption{client.FieldOwner(fieldManager)}}
	if dry == ServerSide {
		r.Options = append(r.Options, client.DryRunAll)
	}
	kinds := c.Objects.Kinds()
	for resource, kind := range map[schema.GroupResource]*schema.GroupVersionKind{
		kinds.Member.GroupResource(): &r.Kinds.Sandboxes, kinds.Pool.GroupResource(): &r.Kinds.Pools, kinds.Claim.GroupResource(): &r.Kinds.Claims,
	} {
		found, err := c.kind(ctx, resource)
		if errors.Is(err, liveread.ErrNotServed) {
			continue
		}
		if err != nil {
			return release.Report{}, err
		}
		*kind = found
	}
	return r.Run(ctx, namespaces...)
}

// Leader says since when the leader was last heard of, when it is alive; "" when
// there is none, or when that may not be known.
func (c *Cluster) Leader(ctx context.Context) string {
	var leases coordinationv1.LeaseList
	if err := c.Client.List(ctx, &leases, client.MatchingFields{"metadata.name": installedAs}); err != nil {
		return ""
	}
	for i := range leases.Items {
		spec := &leases.Items[i].Spec
		if spec.RenewTime == nil || ptr.Deref(spec.HolderIdentity, "") == "" {
			continue
		}
		ago := max(0, c.Now().Sub(spec.RenewTime.Time))
		if ago < time.Duration(ptr.Deref(spec.LeaseDurationSeconds, 0))*time.Second {
			return fmt.Sprintf("%s ago", duration.HumanDuration(ago))
		}
	}
	return ""
}

// PartialError says that the API server refused some of the writes, about one
// object each.
type PartialError struct{ Failed int }

func (e *PartialError) Error() string {
	return fmt.Sprintf("%d objects could not be released", e.Failed)
}

// IsPartial reports whether everything else was done.
func IsPartial(err error) bool {
	var partial *PartialError
	return errors.As(err, &partial)
}
