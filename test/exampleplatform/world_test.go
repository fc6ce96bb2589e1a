package exampleplatform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/freshbind/freshbind/cmd/freshbind/app"
	"github.com/freshbind/freshbind/internal/doctor"
	"github.com/freshbind/freshbind/internal/manager"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/controlplane"
	"github.com/freshbind/freshbind/test/fixture"
	"github.com/freshbind/freshbind/webhooks"
)

const (
	// within bounds every wait.
	within = 5 * time.Minute
	// self is who Freshbind is, with no more rights than it needs.
	self = "system:serviceaccount:freshbind-system:freshbind"
	// namespace enforces, audited does not.
	namespace, audited = "enforced", "audited"
)

// world is an API server with Fleets and Boxes, and the manager that guards them.
type world struct {
	t *testing.T
	// user takes Boxes, controller makes them.
	user, controller client.Client
	// unreadable has the manager fail to read Fleets.
	unreadable atomic.Bool
	metrics    string
}

func newWorld(t *testing.T, platform *manager.Guarded) *world {
	t.Helper()
	ctrl.SetLogger(logr.Discard())
	cluster, err := controlplane.Start(context.WithoutCancel(t.Context()), controlplane.Options{CRDs: CRDs(), Log: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	cluster.RanOn(t, "")
	w := &world{t: t}
	as := func(name string, groups ...string) *rest.Config {
		cfg, err := cluster.User(name, groups...)
		if err != nil {
			t.Fatal(err)
		}
		cfg.QPS = -1
		return cfg
	}
	w.user, w.controller = w.clientOf(as("alice", "system:masters")), w.clientOf(as(ControllerUser, "system:masters"))
	for name, labels := range map[string]map[string]string{
		namespace: {settings.EnforcementKey: string(settings.Enforce)}, audited: nil,
	} {
		w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})
	}
	w.grant()
	w.guard(as(self), platform)
	return w
}

func (w *world) clientOf(cfg *rest.Config) client.Client {
	w.t.Helper()
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// grant gives Freshbind the rights that its doctor asks for, given these kinds.
func (w *world) grant() {
	w.t.Helper()
	rules := append(doctor.Rights(Objects{}.Kinds()), rbacv1.PolicyRule{
		APIGroups: []string{"admissionregistration.k8s.io"}, Resources: []string{"validatingwebhookconfigurations"}, Verbs: []string{"get", "patch"},
	})
	w.create(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "freshbind"}, Rules: rules})
	w.create(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "freshbind"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "freshbind"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: self}},
	})
}

// guard runs the manager, and tells the API server of it.
func (w *world) guard(cfg *rest.Config, platform *manager.Guarded) {
	w.t.Helper()
	dir := w.t.TempDir()
	chain, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	err = errors.Join(err, os.WriteFile(filepath.Join(dir, "tls.crt"), chain, 0o600), os.WriteFile(filepath.Join(dir, "tls.key"), key, 0o600))
	if err != nil {
		w.t.Fatal(err)
	}
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return readsOf{next, &w.unreadable} })
	o := app.NewManagerOptions()
	o.WebhookAddress, o.HealthAddress, o.MetricsAddress = fixture.FreeAddress(w.t), fixture.FreeAddress(w.t), fixture.FreeAddress(w.t)
	o.CertDir, o.LeaderElect = dir, false
	if err := errors.Join(o.Complete(), o.Validate()); err != nil {
		w.t.Fatal(err)
	}
	// A process runs one manager, and this one has had others.
	was := metrics.Registry
	w.t.Cleanup(func() { metrics.Registry = was })
	metrics.Registry = prometheus.NewRegistry()
	fixture.Run(w.t, "the manager", func(ctx context.Context) error { return manager.Run(ctx, cfg, o.Options, platform) })
	w.metrics = "http://" + o.MetricsAddress + "/metrics"
	w.eventually("the manager to be ready", func() error {
		_, err := w.get("http://" + o.HealthAddress + "/readyz")
		return err
	})
	scope := webhooks.Scope{Self: self}
	mutating, validating := webhooks.Configurations(platform.Admission, webhooks.Endpoint{URL: "https://" + o.WebhookAddress, CABundle: chain}, scope)
	objects := append([]client.Object{mutating, validating}, webhooks.NewPolicies(platform.Admission, scope).Objects()...)
	for _, obj := range append(objects, webhooks.NewOwnPolicies(platform.Admission, self).Objects()...) {
		w.create(obj)
	}
}

// readsOf fails reads of single Fleets while somebody says so.
type readsOf struct {
	http.RoundTripper
	fail *atomic.Bool
}

func (r readsOf) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodGet && strings.Contains(req.URL.Path, "/"+Fleets.Resource+"/") && r.fail.Load() {
		return nil, errors.New("the test lets nobody read Fleets")
	}
	return r.RoundTripper.RoundTrip(req)
}

func (w *world) get(url string) (string, error) {
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, body)
	}
	return string(body), err
}

// eventually tries until there is no error, and fails with the last one.
func (w *world) eventually(what string, try func() error) {
	w.t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(w.t.Context(), 50*time.Millisecond, within, true, func(context.Context) (bool, error) {
		last = try()
		return last == nil, nil
	})
	if err != nil {
		w.t.Fatalf("waiting for %s: %v", what, last)
	}
}

func (w *world) create(obj client.Object) {
	w.t.Helper()
	if err := w.user.Create(w.t.Context(), obj); err != nil {
		w.t.Fatalf("creating %T %s: %v", obj, obj.GetName(), err)
	}
}

// spec is that of a Box which runs an image.
func spec(image string) map[string]any {
	return map[string]any{"podTemplate": map[string]any{"spec": map[string]any{
		"containers": []any{map[string]any{"name": "main", "image": image}},
	}}}
}

// fleet creates a Fleet.
func (w *world) fleet(namespace, name, image string, annotations map[string]string) *unstructured.Unstructured {
	w.t.Helper()
	fleet := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(3), "box": spec(image)}}}
	fleet.SetGroupVersionKind(Fleets.WithVersion(Version).GroupVersion().WithKind(fleetKind))
	fleet.SetNamespace(namespace)
	fleet.SetName(name)
	fleet.SetAnnotations(annotations)
	w.create(fleet)
	return fleet
}

// edit has the Fleet's Boxes run another image, and stores its annotations. It is a
// patch: Freshbind writes to Fleets as well.
func (w *world) edit(fleet *unstructured.Unstructured, image string) {
	w.t.Helper()
	annotations := map[string]any{}
	for key, value := range fleet.GetAnnotations() {
		annotations[key] = value
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}, "spec": map[string]any{"box": spec(image)}})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.user.Patch(w.t.Context(), fleet, client.RawPatch(types.MergePatchType, patch)); err != nil {
		w.t.Fatal(err)
	}
}

// unborn is a Box as the controller makes it for a Fleet that it knows so.
func unborn(fleet *unstructured.Unstructured, name, image string) *unstructured.Unstructured {
	box := &unstructured.Unstructured{Object: map[string]any{"spec": spec(image)}}
	box.SetGroupVersionKind(Boxes.WithVersion(Version).GroupVersion().WithKind(boxKind))
	box.SetNamespace(fleet.GetNamespace())
	box.SetName(name)
	box.SetOwnerReferences([]metav1.OwnerReference{owner(fleet)})
	return box
}

func owner(of *unstructured.Unstructured) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: of.GetAPIVersion(), Kind: of.GetKind(), Name: of.GetName(), UID: of.GetUID(), Controller: ptr.To(true)}
}

// box creates a Box of a Fleet, and its Pod.
func (w *world) box(fleet *unstructured.Unstructured, name, image string) *unstructured.Unstructured {
	w.t.Helper()
	box := unborn(fleet, name, image)
	if err := w.controller.Create(w.t.Context(), box); err != nil {
		w.t.Fatalf("creating box %s: %v", name, err)
	}
	w.create(podOf(box, image))
	return box
}

func podOf(box *unstructured.Unstructured, image string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: box.GetNamespace(), Name: box.GetName(), Labels: map[string]string{PodLabel: "true"},
			OwnerReferences: []metav1.OwnerReference{owner(box)},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}},
	}
}

// taken is a Box as somebody stores it who takes it; nobody leaves no name on it.
func taken(box *unstructured.Unstructured, who, ask string) *unstructured.Unstructured {
	out := box.DeepCopy()
	out.SetOwnerReferences(nil)
	annotations := out.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	for key, value := range map[string]string{ClaimKey: who, AskKey: ask} {
		if value != "" {
			annotations[key] = value
		}
	}
	out.SetAnnotations(annotations)
	return out
}

// put stores a Box. That nobody could decide in time, on a machine that has more to do, is
// no verdict.
func (w *world) put(box *unstructured.Unstructured, opts ...client.UpdateOption) error {
	w.t.Helper()
	var verdict error
	w.eventually("a verdict", func() error {
		if verdict = w.asked(box, opts...); isUndecided(verdict) {
			return verdict
		}
		return nil
	})
	return verdict
}

func isUndecided(err error) bool {
	return apierrors.IsServiceUnavailable(err) && strings.Contains(err.Error(), "could not decide")
}

// asked stores a Box, and returns what Freshbind answered, whatever that is.
func (w *world) asked(box *unstructured.Unstructured, opts ...client.UpdateOption) error {
	w.t.Helper()
	var answer error
	w.eventually("an answer", func() error {
		answer = w.user.Update(w.t.Context(), box.DeepCopy(), opts...)
		if apierrors.IsInternalError(answer) {
			return answer
		}
		return nil
	})
	return answer
}

// refusal is what a denial for this reason has to say; nil when err says it.
func refusal(err error, reason string) error {
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "denied the request: "+reason+": ") {
		return fmt.Errorf("the answer is %q, want 409 Conflict with %s", fmt.Sprint(err), reason)
	}
	return nil
}
