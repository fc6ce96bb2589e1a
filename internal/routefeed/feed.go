package routefeed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/freshbind/freshbind/internal/liveread"
	"github.com/freshbind/freshbind/routes"
)

// MinAge is the least MaxAge of a table that a feed can keep: bookmarks come a
// second or two after they were asked for.
const MinAge = 3 * time.Second

// Platform says what a warm-pool system calls Sandboxes, and how to read them.
type Platform struct {
	Sandboxes schema.GroupResource
	// Versions are those of Sandboxes, the preferred one first.
	Versions []string
	// PodSelector selects the Pods of Sandboxes.
	PodSelector labels.Selector
	SandboxOf   func(*unstructured.Unstructured) (routes.Sandbox, error)
	PodOf       func(*unstructured.Unstructured) (routes.Pod, error)
}

var pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// Feed keeps one table.
type Feed struct {
	table      *routes.Table
	platform   Platform
	namespaces []string
	client     dynamic.Interface
	resolver   resolver
	live       *liveread.Reader
	metrics    *Metrics
	clock      clock.WithTicker
	retry      wait.Backoff
}

// resolver finds the served version of a resource.
type resolver interface {
	Resource(context.Context, schema.GroupResource) (schema.GroupVersionResource, error)
}

// New returns a feed of a table that looks at these namespaces only, at all
// when there are none.
func New(cfg *rest.Config, table *routes.Table, platform Platform, namespaces []string, m *Metrics) (*Feed, error) {
	cfg = rest.CopyConfig(cfg)
	// The proof of how old the view is must not queue behind anything.
	cfg.QPS = -1
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("creating the client that follows sandboxes: %w", err)
	}
	versions, err := liveread.NewResolver(cfg, platform.Versions...)
	if err != nil {
		return nil, err
	}
	getter, err := liveread.NewDynamicGetter(cfg)
	if err != nil {
		return nil, err
	}
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	return &Feed{
		table: table, platform: platform, namespaces: namespaces, client: client, resolver: versions, metrics: m, clock: clock.RealClock{},
		live:  liveread.NewReader(getter, nil, liveread.OnUnserved(versions.Refresh)),
		retry: wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 6, Cap: 3 * time.Second},
	}, nil
}

// NeedLeaderElection is false: every replica has its own view.
func (*Feed) NeedLeaderElection() bool { return false }

// errRestart ends a session: nothing is served until everything was listed anew.
var errRestart = errors.New("the view has to be built anew")

// Start follows the cluster until ctx ends.
func (f *Feed) Start(ctx context.Context) error {
	log := logf.FromContext(ctx).WithName("routes")
	retry := f.retry
	for ctx.Err() == nil {
		f.metrics.sessions.Inc()
		err := f.session(logf.IntoContext(ctx, log))
		if ctx.Err() != nil {
			break
		}
		log.Error(err, "Building the view of sandboxes anew; nothing is served meanwhile")
		select {
		case <-ctx.Done():
		case <-f.clock.After(retry.Step()):
		}
	}
	return nil
}

// session follows the cluster until its view is of no use any more.
func (f *Feed) session(ctx context.Context) error {
	resource, err := f.sandboxes(ctx)
	if err != nil {
		return err
	}
	session := f.table.Begin()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return newFollower(f, routes.Sandboxes, resource, "", &sandboxes{session, f.platform.SandboxOf}).run(ctx)
	})
	group.Go(func() error {
		return newFollower(f, routes.Pods, pods, f.platform.PodSelector.String(), &podEvents{session, f.platform.PodOf}).run(ctx)
	})
	group.Go(func() error { return f.decide(ctx, session, &reader{f, resource}) })
	return group.Wait()
}

// sandboxes waits until discovery says which version of Sandboxes is served.
func (f *Feed) sandboxes(ctx context.Context) (schema.GroupVersionResource, error) {
	gvr, err := f.resolver.Resource(ctx, f.platform.Sandboxes)
	if err != nil {
		return gvr, fmt.Errorf("looking for %s: %w", f.platform.Sandboxes, err)
	}
	return gvr, nil
}
