package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	nodev1 "k8s.io/api/node/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/freshbind/freshbind/internal/recorder"
	"github.com/freshbind/freshbind/test/controlplane"
	"github.com/freshbind/freshbind/test/fixture"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/warmpool"
)

const (
	// stormUser is who makes the storm: a user like any other.
	stormUser = "storm"
	// runtimeClass is the field that templates have and lose.
	runtimeClass = "storm"
	// auditIDHeader names a request in the audit log.
	auditIDHeader = "Audit-ID"
)

// world is where storms are made, one after another.
type world struct {
	*scenario.World
	platform platform
	guard    *guard
	// ids are of the requests that wrote templates and, where its log cannot tell, of
	// those that made Sandboxes.
	ids *ids
	// user and hostile are configurations. The audit log knows requests by ids that
	// come from their context.
	user, hostile *rest.Config
	end           context.CancelFunc
}

// newWorld starts everything that storms share.
func newWorld(ctx context.Context, of platform, dir string) (*world, error) {
	args, err := configured(dir)
	if err != nil {
		return nil, err
	}
	o := scenario.WorldOptions{
		Guard:   fixture.Options{Args: args, Scope: scope()},
		Cluster: controlplane.Options{Dir: dir, Log: os.Stderr, AuditLog: true, ControllerManager: true},
	}
	if err := of.Options(ctx, &o); err != nil {
		return nil, err
	}
	started, err := scenario.StartWorld(ctx, o)
	if err != nil {
		return nil, err
	}
	w := &world{World: started, platform: of, guard: &guard{Freshbind: started.Guard}, ids: newIDs()}
	ctx, w.end = context.WithCancel(ctx)
	if err := w.prepare(ctx); err != nil {
		return nil, errors.Join(err, w.Stop())
	}
	return w, nil
}

// Stop ends everything that was started.
func (w *world) Stop() error {
	w.end()
	return w.World.Stop()
}

// Err tells of every program that ended without being asked to.
func (w *world) Err() error { return errors.Join(w.Cluster.Err(), w.guard.Err()) }

func (w *world) prepare(ctx context.Context) error {
	admin, err := kubernetes.NewForConfig(w.Cluster.Config())
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	if err := admit(ctx, admin, w.platform); err != nil {
		return err
	}
	if err := w.platform.begin(ctx, w); err != nil {
		return err
	}
	if w.user, err = w.identity(stormUser); err != nil {
		return err
	}
	w.hostile, err = w.identity(hostileUser)
	return err
}

// identity is a user whose requests carry ids.
func (w *world) identity(name string) (*rest.Config, error) {
	user, err := w.Cluster.User(name, "system:authenticated")
	if err != nil {
		return nil, err
	}
	user.QPS = -1
	user.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if id, ok := r.Context().Value(idKey{}).(string); ok {
				r = r.Clone(r.Context())
				r.Header.Set(auditIDHeader, id)
			}
			return next.RoundTrip(r)
		})
	})
	return user, nil
}

// stage is where one storm is played: a recording of the world, and a pool in
// each of three namespaces of its own.
type stage struct {
	world     *world
	recording *recorder.Recorder
	ends      *ends
	pods      kubernetes.Interface
	pools     [pools]pool
	hostile   *hostile
}

// newStage begins the recording, which goes on until ctx ends, and creates the
// pools, which are not yet full.
func newStage(ctx context.Context, w *world, o options) (*stage, error) {
	names, strategies := w.namespaces(o), w.platform.strategies()
	s := &stage{world: w, ends: newEnds(w.judged(o)...)}
	var err error
	if s.pods, err = kubernetes.NewForConfig(w.user); err != nil {
		return nil, fmt.Errorf("make client for the storm: %w", err)
	}
	if s.recording, err = recorder.New(ctx, w.Cluster.Config(), recorder.Options{Sink: s.ends, Audit: auditOptions()}); err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	// Why a recording ended is told to whoever waits for it.
	go func() { _ = s.recording.Run(ctx) }()
	if err := s.recording.WaitForSync(ctx); err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	for i, name := range names {
		pool := warmpool.PoolOptions{
			Namespace: name, Labels: o.mode(), Strategy: strategies[i], Size: o.size(), Spec: firstContent().podSpec(), User: w.user,
			ByReference: strategies[i] != warmpool.OwnRolling && o.refers(i),
		}
		if s.pools[i], err = w.newPool(ctx, pool); err != nil {
			return nil, err
		}
	}
	if s.hostile, err = w.newHostile(ctx, o); err != nil {
		return nil, err
	}
	return s, w.guard.begin(ctx)
}

// namespaces are those of a storm, one for each strategy.
func (w *world) namespaces(o options) (names [pools]string) {
	for i, strategy := range w.platform.strategies() {
		names[i] = fmt.Sprintf("storm-%d-%s", o.seed, strings.ToLower(strategy))
	}
	return names
}

// judged are the namespaces of a storm whose binds are judged: its own, and the
// hostile tenant's.
func (w *world) judged(o options) []string {
	names, hostile := w.namespaces(o), hostileNamespaces(o.seed)
	return slices.Concat(names[:], hostile[:])
}

// newPool creates a pool and its namespace.
func (w *world) newPool(ctx context.Context, o warmpool.PoolOptions) (pool, error) {
	if err := w.newNamespace(ctx, o); err != nil {
		return nil, err
	}
	return w.platform.NewPool(ctx, o)
}

func (w *world) newNamespace(ctx context.Context, o warmpool.PoolOptions) error {
	_, err := scenario.CreateNamespace(ctx, w.Cluster.Config(), w.Version, o.Namespace, o.Labels)
	return err
}

type idKey struct{}

// withID gives the next request an id of its own.
func withID(ctx context.Context) (context.Context, string) {
	id := newID()
	return context.WithValue(ctx, idKey{}, id), id
}

func newID() string { return "storm-" + rand.Text() }

// roundTripper makes a function an http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// admit gives the storm and the hostile tenant their rights, and templates a runtime
// class to name.
func admit(ctx context.Context, admin kubernetes.Interface, of platform) error {
	class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: runtimeClass}, Handler: "kata"}
	_, err := admin.NodeV1().RuntimeClasses().Create(ctx, class, metav1.CreateOptions{})
	storm, hostile := of.Rules()
	for user, rules := range map[string][]rbacv1.PolicyRule{stormUser: storm, hostileUser: hostile} {
		meta := metav1.ObjectMeta{Name: user}
		_, roleErr := admin.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
		_, bindingErr := admin.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: meta,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		}, metav1.CreateOptions{})
		err = errors.Join(err, roleErr, bindingErr)
	}
	if err != nil {
		return fmt.Errorf("prepare for the storm: %w", err)
	}
	return nil
}
