package scenario

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/client-go/rest"

	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/internal/recorder"
	"github.com/freshbind/freshbind/test/controlplane"
)

// Recording is the watch history of a whole cluster, while it grows.
type Recording struct{ recorder *recorder.Recorder }

// Record begins a recording, which goes on until ctx ends, and returns once its
// start is complete.
func Record(ctx context.Context, cfg *rest.Config) (*Recording, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1
	r, err := recorder.New(ctx, cfg, recorder.Options{})
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	// Why a recording ended is told to whoever waits for it.
	go func() { _ = r.Run(ctx) }()
	if err := r.WaitForSync(ctx); err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	return &Recording{recorder: r}, nil
}

// Judge judges everything that was stored before the call.
func (r *Recording) Judge(ctx context.Context) (*checker.Report, error) {
	if err := r.recorder.CatchUp(ctx); err != nil {
		return nil, fmt.Errorf("judge recording: %w", err)
	}
	return r.recorder.Report(), nil
}

// About returns what a report says of one namespace.
func About(r *checker.Report, namespace string) (checker.Summary, []checker.Bind) {
	return r.Namespace(namespace), slices.DeleteFunc(slices.Clone(r.Findings), func(b checker.Bind) bool { return b.Namespace != namespace })
}

// CheckFresh checks that all claims of a namespace are ready, and that none has anything but
// a fresh sandbox of its own.
func CheckFresh(t controlplane.T, r *checker.Report, namespace string, claims int) checker.Summary {
	t.Helper()
	sum, findings := About(r, namespace)
	for _, b := range findings {
		if b.Class != checker.Raced {
			t.Errorf("not fresh: %s", b)
		}
	}
	if sum.Claims != claims || sum.Ready != claims {
		t.Errorf("%d claims, %d ready, want %d of each", sum.Claims, sum.Ready, claims)
	}
	return sum
}
