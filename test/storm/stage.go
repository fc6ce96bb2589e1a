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

// world is where storms are made, one after another.
type world struct {
	*scenario.World
	guard *guard
	// user is the storm's configuration. The audit log knows its requests by ids
	// that come from their context.
	user *rest.Config
}

// newWorld starts everything that storms share.
func newWorld(ctx context.Context, release, dir string) (*world, error) {
	crds, err := upstream.CRDs(ctx, release)
	if err != nil {
		return nil, err
	}
	started, err := scenario.StartWorld(ctx, scenario.WorldOptions{
		Release: release,
		Cluster: controlplane.Options{Dir: dir, Log: os.Stderr, AuditLog: true, ControllerManager: true, CRDs: crds},
	})
	if err != nil {
		return nil, err
	}
	w := &world{World: started, guard: &guard{Freshbind: started.Guard}}
	if err := w.prepare(ctx); err != nil {
		return nil, errors.Join(err, w.Stop())
	}
	return w, nil
}

// Err tells of every program that ended without being asked to.
func (w *world) Err() error { return errors.Join(w.Cluster.Err(), w.guard.Err()) }

func (w *world) prepare(ctx context.Context) error {
	admin, err := kubernetes.NewForConfig(w.Cluster.Config())
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	if err := admit(ctx, admin); err != nil {
		return err
	}
	if w.user, err = w.Cluster.User(stormUser, "system:authenticated"); err != nil {
		return err
	}
	w.user.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if id, ok := r.Context().Value(idKey{}).(string); ok {
				r = r.Clone(r.Context())
				r.Header.Set(auditIDHeader, id)
			}
			return next.RoundTrip(r)
		})
	})
	return nil
}

// stage is where one storm is played: a recording of the world, and a pool in
// each of three namespaces of its own.
type stage struct {
	world     *world
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

// newStage begins the recording, which goes on until ctx ends, and creates the
// pools, which are not yet full.
func newStage(ctx context.Context, w *world, o options) (*stage, error) {
	names := namespaces(o.seed)
	s := &stage{world: w, ends: newEnds(names[:]...), ids: map[audit.RV]string{}}
	var err error
	if s.pods, err = kubernetes.NewForConfig(w.user); err != nil {
		return nil, fmt.Errorf("make client for the storm: %w", err)
	}
	if s.recording, err = recorder.New(ctx, w.Cluster.Config(), recorder.Options{Sink: s.ends}); err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	// Why a recording ended is told to whoever waits for it.
	go func() { _ = s.recording.Run(ctx) }()
	if err := s.recording.WaitForSync(ctx); err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	for i, name := range names {
		if s.pools[i], err = w.newPool(ctx, name, strategies[i], o.size()); err != nil {
			return nil, err
		}
	}
	return s, w.guard.begin(ctx)
}

var strategies = [pools]string{scenario.Recreate, scenario.OnReplenish, rollingUpdate}

// namespaces are those of a storm, one for each strategy.
func namespaces(seed uint64) (names [pools]string) {
	for i, strategy := range strategies {
		names[i] = fmt.Sprintf("storm-%d-%s", seed, strings.ToLower(strategy))
	}
	return names
}

// rollingUpdate is chosen by annotation: the pool's own spec does not know it.
const rollingUpdate = "RollingUpdate"

func (w *world) newPool(ctx context.Context, name, strategy string, size int) (pool, error) {
	if _, err := scenario.CreateNamespace(ctx, w.Cluster.Config(), w.Version, name, scenario.Enforce()); err != nil {
		return pool{}, err
	}
	ns, err := scenario.Use(w.user, w.Version, name)
	if err != nil {
		return pool{}, err
	}
	if err := ns.WaitGuarded(ctx, guardWithin); err != nil {
		return pool{}, err
	}
	p := scenario.Pool{Name: "python", Template: "python", Image: firstContent().name(), Replicas: size, Strategy: strategy}
	template := builders.MakeTemplate(name, p.Template).APIVersion(w.Version).Image(p.Image)
	warm := builders.MakePool(name, p.Name).APIVersion(w.Version).Template(p.Template).Replicas(int64(size))
	if strategy == rollingUpdate {
		warm.Strategy(scenario.OnReplenish).Annotation(advice.StrategyKey, rollingUpdate)
	} else {
		warm.Strategy(strategy)
	}
	return pool{ns, p}, ns.Create(ctx, template.Obj(), warm.Obj())
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
