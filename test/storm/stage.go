package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"

	nodev1 "k8s.io/api/node/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/internal/recorder"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/controlplane"
	"github.com/freshbind/freshbind/test/fixture"
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
	// user and hostile are configurations. The audit log knows requests by ids that
	// come from their context.
	user, hostile *rest.Config
}

// newWorld starts everything that storms share.
func newWorld(ctx context.Context, release, dir string) (*world, error) {
	crds, err := upstream.CRDs(ctx, release)
	if err != nil {
		return nil, err
	}
	args, err := configured(dir)
	if err != nil {
		return nil, err
	}
	started, err := scenario.StartWorld(ctx, scenario.WorldOptions{
		Release: release,
		Guard:   fixture.Options{Args: args, Scope: scope()},
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

	// ids tells of each template version which request wrote it.
	mu  sync.Mutex
	ids map[checker.RV]string
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
	s := &stage{world: w, ends: newEnds(judged(o.seed)...), ids: map[checker.RV]string{}}
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
		pool := poolOptions{namespace: name, labels: scenario.Enforce(), strategy: strategies[i], size: o.size(), user: w.user}
		if s.pools[i], err = w.newPool(ctx, pool); err != nil {
			return nil, err
		}
	}
	if s.hostile, err = w.newHostile(ctx, o.seed); err != nil {
		return nil, err
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

// judged are the namespaces of a storm whose binds are judged: its own, and the
// hostile tenant's.
func judged(seed uint64) []string {
	names, hostile := namespaces(seed), hostileNamespaces(seed)
	return slices.Concat(names[:], hostile[:])
}

// rollingUpdate is chosen by annotation: the pool's own spec does not know it.
const rollingUpdate = "RollingUpdate"

// poolOptions say where a pool is, and whose.
type poolOptions struct {
	namespace string
	// labels are the namespace's, annotations the pool's.
	labels, annotations map[string]string
	strategy            string
	size                int
	user                *rest.Config
}

func (w *world) newPool(ctx context.Context, o poolOptions) (pool, error) {
	if _, err := scenario.CreateNamespace(ctx, w.Cluster.Config(), w.Version, o.namespace, o.labels); err != nil {
		return pool{}, err
	}
	ns, err := scenario.Use(o.user, w.Version, o.namespace)
	if err != nil {
		return pool{}, err
	}
	// Webhooks in force in one namespace are so in all.
	if maps.Equal(o.labels, scenario.Enforce()) {
		if err := ns.WaitGuarded(ctx, guardWithin); err != nil {
			return pool{}, err
		}
	}
	p := scenario.Pool{Name: "python", Template: "python", Image: firstContent().name(), Replicas: o.size, Strategy: o.strategy}
	template := builders.MakeTemplate(o.namespace, p.Template).APIVersion(w.Version).Image(p.Image)
	return pool{ns, p}, ns.Create(ctx, template.Obj(), w.warmPool(o, p))
}

func (w *world) warmPool(o poolOptions, p scenario.Pool) *unstructured.Unstructured {
	warm := builders.MakePool(o.namespace, p.Name).APIVersion(w.Version).Template(p.Template).Replicas(int64(p.Replicas))
	for key, value := range o.annotations {
		warm.Annotation(key, value)
	}
	if o.strategy == rollingUpdate {
		return warm.Strategy(scenario.OnReplenish).Annotation(settings.StrategyKey, rollingUpdate).Obj()
	}
	return warm.Strategy(o.strategy).Obj()
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

// admit gives the storm and the hostile tenant their rights, and templates a runtime
// class to name.
func admit(ctx context.Context, admin kubernetes.Interface) error {
	class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: runtimeClass}, Handler: "kata"}
	_, err := admin.NodeV1().RuntimeClasses().Create(ctx, class, metav1.CreateOptions{})
	for user, rules := range map[string][]rbacv1.PolicyRule{stormUser: stormRules, hostileUser: hostileRules} {
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
