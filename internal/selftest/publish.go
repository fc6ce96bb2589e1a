package selftest

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/settings"
)

// LeaseName is the Lease that carries the last result: in spec.renewTime when it
// was, in the annotation SelfTestKey Passed or what is wrong.
const LeaseName = "freshbind-self-test"

// Passed is what a Lease says of a test that was refused as it has to be.
const Passed = "passed"

// maxDetail bounds what the Lease says.
const maxDetail = 1024

// Publisher writes results of the leader to a Lease, which whoever may read
// Leases can see without a way to the metrics.
type Publisher struct {
	Reader    client.Reader
	Writer    client.Writer
	Namespace string
	// Identity names this process.
	Identity string
	// Leads reports whether this process is the one to write.
	Leads func() bool
	// Interval is that of the tests.
	Interval time.Duration
}

// Publish writes one result.
func (p *Publisher) Publish(ctx context.Context, r Result) error {
	if !p.Leads() {
		return nil
	}
	detail := Passed
	if r.Err != nil {
		detail = r.Err.Error()
		detail = detail[:min(len(detail), maxDetail)]
	}
	lease := &coordinationv1.Lease{}
	err := p.Reader.Get(ctx, types.NamespacedName{Namespace: p.Namespace, Name: LeaseName}, lease)
	absent := apierrors.IsNotFound(err)
	if err != nil && !absent {
		return fmt.Errorf("reading the lease of the self-test: %w", err)
	}
	lease.Namespace, lease.Name = p.Namespace, LeaseName
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, settings.SelfTestKey, detail)
	lease.Spec.HolderIdentity = ptr.To(p.Identity)
	lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(r.At))
	lease.Spec.LeaseDurationSeconds = ptr.To(max(1, int32(3*p.Interval/time.Second)))
	if absent {
		err = p.Writer.Create(ctx, lease)
	} else {
		err = p.Writer.Update(ctx, lease)
	}
	if err != nil {
		return fmt.Errorf("writing the lease of the self-test: %w", err)
	}
	return nil
}
