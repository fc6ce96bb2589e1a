package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"

	nodev1 "k8s.io/api/node/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/freshbind/freshbind/internal/advice"
	"github.com/freshbind/freshbind/internal/audit"
	"github.com/freshbind/freshbind/internal/recorder"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/controlplane"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

const (
	// stormUser is who makes the storm: a user like any other.
	stormUser = "storm"
	// runtimeClass is the field that templates have and lose.
	runtimeClass = "storm"
	// auditIDHeader names a request in the audit log.
	auditIDHeader = "Audit-ID"
)

// stormRules are what the storm may do.
var stormRules = []rbacv1.PolicyRule{
	{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "delete"}},
	{APIGroups: []string{"agents.x-k8s.io"}, Resources: []string{"sandboxes"}, Verbs: []string{"get", "list", "create", "delete"}},
	{APIGroups: []string{"extensions.agents.x-k8s.io"}, Resources: []string{"sandboxclaims"}, Verbs: []string{"get", "list", "create", "delete"}},
	{APIGroups: []string{"extensions.agents.x-k8s.io"}, Resources: []string{"sandboxtemplates"}, Verbs: []string{"get", "create", "update"}},
	{APIGroups: []string{"extensions.agents.x-k8s.io"}, Resources: []string{"sandboxwarmpools"}, Verbs: []string{"create"}},
}

// stage is where the storm is played: a world, a recording of it, and a pool in
// each of three namespaces.
type stage struct {
	world     *scenario.World
	guard     *guard
	recording *recorder.Recorder
	ends      *ends
	pods      kubernetes.Interface
	pools     [pools]pool

	// ids tells of each template version which request wrote it.
	mu  sync.Mutex
	ids map[audit.RV]string
}

// pool is one pool in a namespace of its own.
type pool struct {
	*scenario.Namespace
	scenario.Pool
}

// newStage starts everything. The pools are created, and not yet full.
func newStage(ctx context.Context, o options, dir string) (*stage, error) {
	crds, err := upstream.CRDs(ctx, o.upstream)
	if err != nil {
		return nil, err
	}
	world, err := scenario.StartWorld(ctx, scenario.WorldOptions{
		Release: o.upstream,
		Cluster: controlplane.Options{Dir: dir, Log: os.Stderr, AuditLog: true, ControllerManager: true, CRDs: crds},
	})
	if err != nil {
		return nil, err
	}
	s := &stage{world: world, guard: &guard{Freshbind: world.Guard}, ends: newEnds(), ids: map[audit.RV]string{}}
	if err := s.prepare(ctx, o); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

// Err tells of every program that ended without being asked to.
func (s *stage) Err() error { return errors.Join(s.world.Cluster.Err(), s.guard.Err()) }

func (s *stage) stop() error { return s.world.Stop() }

func (s *stage) prepare(ctx context.Context, o options) error {
	admin, err := kubernetes.NewForConfig(s.world.Cluster.Config())
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	if err := admit(ctx, admin); err != nil {
		return err
	}
	user, err := s.user()
	if err != nil {
		return err
	}
	if s.pods, err = kubernetes.NewForConfig(user); err != nil {
		return fmt.Errorf("make client for the storm: %w", err)
	}
	if s.recording, err = recorder.New(ctx, s.world.Cluster.Config(), recorder.Options{Sink: s.ends}); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	// Why a recording ended is told to whoever waits for it.
	go func() { _ = s.recording.Run(ctx) }()
	if err := s.recording.WaitForSync(ctx); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	for i, strategy := range []string{scenario.Recreate, scenario.OnReplenish, rollingUpdate} {
		if s.pools[i], err = s.newPool(ctx, user, strategy, o.size()); err != nil {
			return err
		}
	}
	return nil
}

// rollingUpdate is chosen by annotation: the pool's own spec does not know it.
const rollingUpdate = "RollingUpdate"

func (s *stage) newPool(ctx context.Context, user *rest.Config, strategy string, size int) (pool, error) {
	name := "storm-" + strings.ToLower(strategy)
	if _, err := scenario.CreateNamespace(ctx, s.world.Cluster.Config(), s.world.Version, name, scenario.Enforce()); err != nil {
		return pool{}, err
	}
	ns, err := scenario.Use(user, s.world.Version, name)
	if err != nil {
		return pool{}, err
	}
	if err := ns.WaitGuarded(ctx, guardWithin); err != nil {
		return pool{}, err
	}
	p := scenario.Pool{Name: "python", Template: "python", Image: firstContent().name(), Replicas: size, Strategy: strategy}
	template := builders.MakeTemplate(name, p.Template).APIVersion(s.world.Version).Image(p.Image)
	warm := builders.MakePool(name, p.Name).APIVersion(s.world.Version).Template(p.Template).Replicas(int64(size))
	if strategy == rollingUpdate {
		warm.Strategy(scenario.OnReplenish).Annotation(advice.StrategyKey, rollingUpdate)
	} else {
		warm.Strategy(strategy)
	}
	return pool{ns, p}, ns.Create(ctx, template.Obj(), warm.Obj())
}

// user is the storm's configuration. The audit log knows its requests by ids
// that come from their context.
func (s *stage) user() (*rest.Config, error) {
	cfg, err := s.world.Cluster.User(stormUser, "system:authenticated")
	if err != nil {
		return nil, err
	}
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if id, ok := r.Context().Value(idKey{}).(string); ok {
				r = r.Clone(r.Context())
				r.Header.Set(auditIDHeader, id)
			}
			return next.RoundTrip(r)
		})
	})
	return cfg, nil
}

type idKey struct{}

// withID gives the next request an id of its own.
func withID(ctx context.Context) (context.Context, string) {
	id := "storm-" + rand.Text()
	return context.WithValue(ctx, idKey{}, id), id
}

// roundTripper makes a function an http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// admit gives the storm its rights, and templates a runtime class to name.
func admit(ctx context.Context, admin kubernetes.Interface) error {
	meta := metav1.ObjectMeta{Name: stormUser}
	_, roleErr := admin.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: stormRules}, metav1.CreateOptions{})
	_, bindingErr := admin.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: stormUser}},
	}, metav1.CreateOptions{})
	class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: runtimeClass}, Handler: "kata"}
	_, classErr := admin.NodeV1().RuntimeClasses().Create(ctx, class, metav1.CreateOptions{})
	if err := errors.Join(roleErr, bindingErr, classErr); err != nil {
		return fmt.Errorf("prepare for the storm: %w", err)
	}
	return nil
}
