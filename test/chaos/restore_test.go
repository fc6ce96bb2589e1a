package chaos

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freshbind/freshbind/internal/recorder"
	"github.com/freshbind/freshbind/test/controlplane"
)

// etcdRestored has the whole control plane come back as it was before the template was
// edited and claims were made. What is edited then gets the generations of edits that
// are no more; without forward it gets their resourceVersions, too. Without forward
// everything with caches has to be started again. Of Freshbind nobody does so but
// Freshbind: it notices by itself, and ends.
func etcdRestored(forward bool) func(*stage) (func(context.Context) (string, bool), func()) {
	return func(s *stage) (func(context.Context) (string, bool), func()) {
		ctx := s.t.Context()
		s.must(s.load(ctx, 1))
		s.must(s.calm())
		snapshot, err := s.w.Cluster.Snapshot(ctx)
		s.must(err)
		claims, image := slices.Clone(s.claims), s.image
		s.must(s.load(ctx, s.w.many(2, 10)))
		s.leaseRenewed(4)
		// What is judged of the time before has to be judged now: a recording cannot go on
		// after a restore.
		s.must(s.calm())
		bad, _, err := s.convictions()
		s.must(err)
		if len(bad) > 0 {
			s.t.Errorf("before etcd was restored: %v", bad)
		}
		var was [2]int
		for i, r := range s.w.replicas {
			was[i] = r.Starts()
		}
		s.must(s.w.Cluster.Restore(ctx, snapshot, controlplane.RestoreOptions{Forward: forward}))
		if !forward {
			s.must(s.w.platform.Restart(ctx, s.w.World))
		}
		s.claims, s.image, s.unrecorded = claims, image, len(claims)
		s.must(s.w.startRecord())
		if forward {
			return now("the control plane is back", func() {})
		}
		return func(context.Context) (string, bool) {
			var ended [2]int
			for i, r := range s.w.replicas {
				ended[i] = r.Starts() - was[i]
			}
			return fmt.Sprintf("replicas noticed, and were started again, %v times", ended), slices.Min(ended[:]) > 0
		}, func() {}
	}
}

// leaseRenewed waits until the lease was renewed so often that every replica has seen a
// version that the snapshot does not have: followers look half as often as it is renewed.
func (s *stage) leaseRenewed(times int) {
	seen := map[string]bool{}
	s.eventually("the lease is renewed", func(ctx context.Context) (string, bool) {
		lease, err := s.kube().CoordinationV1().Leases("default").Get(ctx, "freshbind", metav1.GetOptions{})
		if err != nil {
			return err.Error(), false
		}
		seen[lease.ResourceVersion] = true
		return fmt.Sprintf("%d versions", len(seen)), len(seen) > times
	})
}

// startRecord begins a recording, in place of the one before.
func (w *world) startRecord() error {
	if w.endRecord != nil {
		w.endRecord()
	}
	ctx, cancel := context.WithCancel(w.background)
	w.endRecord = cancel
	var err error
	if w.record, err = recorder.New(ctx, w.Cluster.Config(), recorder.Options{}); err != nil {
		return err
	}
	go func() { _ = w.record.Run(ctx) }()
	return w.record.WaitForSync(ctx)
}
