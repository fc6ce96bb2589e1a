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
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/release"
)

// Release undoes what Freshbind has done in namespaces, "" for all, to the objects of these
// platforms. Where a platform is gone there is nothing to undo but what is left is told.
func (c *Cluster) Release(ctx context.Context, dry DryRun, platforms []Objects, namespaces ...string) (release.Report, error) {
	r := &release.Releaser{Client: c.Client, Silent: dry == ClientSide, Options: []client.PatchOption{client.FieldOwner(fieldManager)}}
	if dry == ServerSide {
		r.Options = append(r.Options, client.DryRunAll)
	}
	var errs []error
	for _, objects := range platforms {
		kinds, err := c.served(ctx, objects.Kinds())
		if err != nil {
			errs = append(errs, err)
			continue
		}
		r.Platforms = append(r.Platforms, release.Platform{Objects: objects, Kinds: kinds})
	}
	report, err := r.Run(ctx, namespaces...)
	return report, errors.Join(append(errs, err)...)
}

// served are those of a platform's kinds that the API server serves.
func (c *Cluster) served(ctx context.Context, kinds platform.Kinds) (out release.Kinds, err error) {
	for _, of := range []struct {
		kind   platform.Kind
		served *schema.GroupVersionKind
	}{{kinds.Member, &out.Sandboxes}, {kinds.Pool, &out.Pools}, {kinds.Claim, &out.Claims}} {
		gvr, err := c.Resolver.Resource(ctx, of.kind.GroupResource())
		if errors.Is(err, liveread.ErrNotServed) {
			continue
		}
		if err != nil {
			return release.Kinds{}, fmt.Errorf("looking for %s in this cluster: %w", kinds.Product, err)
		}
		*of.served = gvr.GroupVersion().WithKind(of.kind.Kind)
	}
	return out, nil
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
