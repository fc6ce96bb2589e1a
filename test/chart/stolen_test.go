package chart

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/internal/platform/kruise"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/controlplane"
	"github.com/freshbind/freshbind/test/fixture"
	"github.com/freshbind/freshbind/test/upstream"
	"github.com/freshbind/freshbind/webhooks"
)

// What stands in a namespace when a thief comes.
const (
	victim = "prod"
	yes    = "yes"
	byRole = "no: the role"
	byRule = "no: a policy"
)

// theft is a cluster with the chart's roles and policies, and somebody who has the
// identity that they are for.
type theft struct {
	cluster      *controlplane.Cluster
	admin, thief client.Client
}

// What a stolen identity can do is what docs/security.md says.
func TestAStolenIdentityCanDoWhatTheDocumentationSays(t *testing.T) {
	s := newTheft(t)
	s.grants(t)
	s.prepare(t)
	s.inForce(t)
	got := map[string]string{}
	for name, try := range s.attempts() {
		got[name] = answer(t, name, try(t.Context()))
	}
	s.grants(t, "legacy.barePods=true")
	s.may(t, &authorizationv1.ResourceAttributes{Namespace: victim, Verb: "delete", Resource: "pods"})
	for name, try := range s.deletes() {
		got["with `legacy.barePods`: "+name] = answer(t, name, try(t.Context()))
	}
	if diff := cmp.Diff(documented(t), got); diff != "" {
		t.Errorf("what a thief can do (-docs/security.md,+API server):\n%s", diff)
	}
}

// documented is the table of docs/security.md.
func documented(t *testing.T) map[string]string {
	t.Helper()
	root, err := controlplane.RepositoryDir()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "## What a stolen identity can do\n")
	section, _, _ = strings.Cut(section, "\n## ")
	rows := map[string]string{}
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) == 3 && (strings.HasPrefix(strings.TrimSpace(cells[1]), yes) || strings.HasPrefix(strings.TrimSpace(cells[1]), "no: ")) {
			rows[strings.TrimSpace(cells[0])] = strings.TrimSpace(cells[1])
		}
	}
	return rows
}

func answer(t *testing.T, name string, err error) string {
	t.Helper()
	switch {
	case err == nil:
		return yes
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'freshbind-own-"),
		apierrors.IsInvalid(err) && strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'freshbind-own-"):
		return byRule
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), fixture.User):
		return byRole
	}
	t.Errorf("%s: %v", name, err)
	return err.Error()
}

func newTheft(t *testing.T) *theft {
	t.Helper()
	crds, err := upstream.CRDs(t.Context(), "v1.0.3")
	if err != nil {
		t.Fatal(err)
	}
	s := &theft{}
	if s.cluster, err = controlplane.Start(t.Context(), controlplane.Options{CRDs: crds, Log: t.Output()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.cluster.Stop() })
	if s.admin, err = client.New(s.cluster.Config(), client.Options{}); err != nil {
		t.Fatal(err)
	}
	identity, err := s.cluster.User(fixture.User, "system:serviceaccounts", "system:serviceaccounts:"+namespace, "system:authenticated")
	if err != nil {
		t.Fatal(err)
	}
	if s.thief, err = client.New(identity, client.Options{}); err != nil {
		t.Fatal(err)
	}
	s.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: victim}})
	return s
}

func (s *theft) create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := s.admin.Create(t.Context(), o); err != nil {
			t.Fatalf("%s: %v", o.GetName(), err)
		}
	}
}

// grants installs the roles and policies, and webhook configurations that ask nobody.
// Freshbind's own policies are the code's, which are the chart's
// (TestAdmissionConfigurationIsTheCodes).
func (s *theft) grants(t *testing.T, values ...string) {
	t.Helper()
	own := map[string]*unstructured.Unstructured{}
	for _, o := range webhooks.NewOwnPolicies(agentsandbox.Admission(), fixture.User, kruise.Admission()).Objects() {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			t.Fatal(err)
		}
		unstructured.RemoveNestedField(content, "status")
		own[o.GetObjectKind().GroupVersionKind().Kind+" "+o.GetName()] = &unstructured.Unstructured{Object: content}
	}
	for _, o := range render(t, append(set(values...), certManager, mutating)...) {
		group := o.GroupVersionKind().Group
		if group != rbacv1.GroupName && group != "admissionregistration.k8s.io" || o.GetAnnotations()["helm.sh/hook"] != "" {
			continue
		}
		delete(o.Object, "webhooks")
		if policy := own[o.GetKind()+" "+o.GetName()]; policy != nil {
			o = policy
		}
		if err := s.admin.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("chart"), client.ForceOwnership); err != nil {
			t.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
}

// inForce waits until the API server, which watches policies and roles, knows of them.
// What it allows until then changes nothing that is tried later.
func (s *theft) inForce(t *testing.T) {
	t.Helper()
	var last error
	n := 0
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, within, true, func(ctx context.Context) (bool, error) {
		n++
		for _, try := range []attempt{
			s.patch("v1", "Pod", "probe", fmt.Sprintf(`{"metadata":{"labels":{"n":"%d"}}}`, n)),
			s.revision(fmt.Sprint("probe-", n)),
			s.status("probe", fmt.Sprintf(`{"podIPs":["192.0.2.%d"]}`, n%250)), s.sandboxIn(metav1.NamespaceDefault, fmt.Sprint("probe-", n)),
		} {
			if last = try(ctx); last == nil || !strings.Contains(last.Error(), "freshbind-own-") {
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil {
		t.Fatalf("waiting for the policies to hold: %v; last answer: %v", err, last)
	}
}

// may waits until the API server, which watches roles, knows that the thief has a right.
func (s *theft) may(t *testing.T, right *authorizationv1.ResourceAttributes) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, within, true, func(ctx context.Context) (bool, error) {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: right}}
		err := s.thief.Create(ctx, review)
		return review.Status.Allowed, err
	})
	if err != nil {
		t.Fatalf("waiting for the right to %s %s: %v", right.Verb, right.Resource, err)
	}
}

func owner(apiVersion, kind string) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: "o", UID: types.UID("uid-" + kind), Controller: ptr.To(true)}
}

func controllerRevision(name string, owners ...metav1.OwnerReference) *appsv1.ControllerRevision {
	return &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: victim, Name: name, OwnerReferences: owners}, Data: runtime.RawExtension{Raw: []byte(`{}`)}, Revision: 1}
}

const (
	agents     = "agents.x-k8s.io/v1beta1"
	extensions = "extensions.agents.x-k8s.io/v1beta1"
)

// prepare makes what a thief would be after.
func (s *theft) prepare(t *testing.T) {
	t.Helper()
	pod := func(name string, owners ...metav1.OwnerReference) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: victim, Name: name, Labels: map[string]string{"app": "web"}, OwnerReferences: owners},
			Spec:       corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "c", Image: "web:v1"}}},
		}
	}
	made := pod("job", owner("apps/v1", "ReplicaSet"))
	made.GenerateName = "job-"
	ran := pod("sandboxed", owner(agents, "Sandbox"))
	left := pod("released")
	left.GenerateName = "python-"
	waits := pod("waiting", owner(agents, "Sandbox"))
	waits.Spec.NodeName = ""
	s.create(t, pod("web"), pod("probe"), made, ran, left, waits, pod("bare", owner("extensions.agents.x-k8s.io/v1alpha1", "SandboxWarmPool")))
	template := builders.MakeTemplate(victim, "python").Obj()
	pool := builders.MakePool(victim, "python").Obj()
	claim := builders.MakeClaim(victim, "c").Obj()
	s.create(t, stripped(template), stripped(pool), stripped(claim))
	for name, o := range map[string]metav1.OwnerReference{
		"idle": owner(extensions, "SandboxWarmPool"), "spare": owner(extensions, "SandboxWarmPool"), "probe": owner(extensions, "SandboxWarmPool"),
	} {
		s.create(t, stripped(builders.MakeMember(pool, template).Name(name).Owners(o).Obj()))
	}
	// The pool controls it still.
	claims := owner(extensions, "SandboxClaim")
	claims.Controller = nil
	s.create(t, stripped(builders.MakeMember(pool, template).Name("used").Owners(owner(extensions, "SandboxWarmPool"), claims).Obj()))
	s.create(t, controllerRevision("daemonset", owner("apps/v1", "DaemonSet")), controllerRevision("python-v1-a", owner(extensions, "SandboxTemplate")),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: victim, Name: "token"}})
}

// stripped has nothing that only the API server sets.
func stripped(o *unstructured.Unstructured) *unstructured.Unstructured {
	o.SetUID("")
	o.SetResourceVersion("")
	unstructured.RemoveNestedField(o.Object, "status")
	return o
}

type attempt func(ctx context.Context) error

// attempts are what a thief could try, in the words of docs/security.md.
func (s *theft) attempts() map[string]attempt {
	mark := func(field, key, value string) string {
		return `{"metadata":{"` + field + `":{"` + key + `":` + value + `}}}`
	}
	image := `{"spec":{"containers":[{"name":"c","image":"evil"}]}}`
	out := map[string]attempt{
		"point the webhooks of Freshbind at another server, and widen their rules": s.patch("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", release, `{"metadata":{"labels":{"a":"b"}}}`),
		"undo the policies that guard members":                                     s.patch("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", "freshbind-used", `{"spec":{"matchResources":{"namespaceSelector":{"matchLabels":{"no":"body"}}}}}`),
		"delete those webhooks, or the policies that guard members": func(ctx context.Context) error {
			hook := named("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", release)
			policy := named("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "freshbind-used")
			return errors.Join(s.thief.Delete(ctx, hook, client.DryRunAll), s.thief.Delete(ctx, policy, client.DryRunAll))
		},
		"delete the policies that hold Freshbind itself":         s.delete("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", "freshbind-own-writes"),
		"undo the policies that hold Freshbind itself":           s.patch("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", "freshbind-own-writes", `{"spec":{"validationActions":["Warn"]}}`),
		"change the image of a Pod":                              s.patch("v1", "Pod", "web", image),
		"take a Pod out of a Service":                            s.patch("v1", "Pod", "web", mark("labels", "app", `null`)),
		"put a Pod into a Service":                               s.patch("v1", "Pod", "sandboxed", mark("labels", "role", `""`)),
		"give a Pod another owner":                               s.patch("v1", "Pod", "web", `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"a","uid":"a"}]}}`),
		"block a Pod's deletion":                                 s.patch("v1", "Pod", "web", `{"metadata":{"finalizers":["a/b"]}}`),
		"change the revision label of a member or Pod":           s.patch("v1", "Pod", "sandboxed", mark("labels", settings.StampKey, `"v1-x"`)),
		"create a Pod":                                           s.make(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "new"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}),
		"run a command, or a debug container, in a Pod":          s.debug("web"),
		"change what a Sandbox runs":                             s.patch(agents, "Sandbox", "idle", `{"spec":{"podTemplate":{"spec":{"containers":[{"name":"c","image":"evil"}]}}}}`),
		"suspend a claim's sandbox":                              s.patch(agents, "Sandbox", "used", `{"spec":{"operatingMode":"Suspended"}}`),
		"have a claim's sandbox end":                             s.patch(agents, "Sandbox", "used", `{"spec":{"shutdownTime":"2020-01-01T00:00:00Z"}}`),
		"create a Sandbox":                                       s.sandboxIn(metav1.NamespaceDefault, "new"),
		"create a Sandbox, outside of the self-test's namespace": s.sandboxIn(victim, "new"),
		"give a Sandbox to another claim":                        s.patch(agents, "Sandbox", "idle", `{"metadata":{"ownerReferences":[{"apiVersion":"`+extensions+`","kind":"SandboxClaim","name":"a","uid":"a","controller":true}]}}`),
		"show or hide a member":                                  s.patch(agents, "Sandbox", "idle", mark("labels", agentsandbox.TemplateRefHashLabel, `null`)),
		"mark an idle Sandbox as used":                           s.patch(agents, "Sandbox", "idle", mark("annotations", settings.BoundToKey, `"x"`)),
		"report that a Sandbox is ready, or where it is":         s.status("idle", `{"podIPs":["192.0.2.1"]}`),
		"end a claim's sandbox":                                  s.delete(agents, "Sandbox", "used"),
		"change what a claim asks for":                           s.patch(extensions, "SandboxClaim", "c", `{"spec":{"warmPoolRef":{"name":"other"}}}`),
		"change the size or the template of a pool":              s.patch(extensions, "SandboxWarmPool", "python", `{"spec":{"replicas":1000}}`),
		"change the mode or the strategy of a pool":              s.patch(extensions, "SandboxWarmPool", "python", mark("annotations", settings.EnforcementKey, `"audit"`)),
		"say that a pool may give out stale members":             s.patch(extensions, "SandboxWarmPool", "python", mark("annotations", settings.AdmitKey, `"any"`)),
		"change a template":                                      s.patch(extensions, "SandboxTemplate", "python", `{"metadata":{"labels":{"a":"b"}}}`),
		"rewrite the history of a DaemonSet or StatefulSet":      s.rewrite("daemonset"),
		"delete the history of a DaemonSet or StatefulSet":       s.delete("apps/v1", "ControllerRevision", "daemonset"),
		"create a ControllerRevision of somebody else's":         s.revision("nobodys"),
		"rewrite the history of a template":                      s.rewrite("python-v1-a"),
		"read Pods, templates and ControllerRevisions": func(ctx context.Context) error {
			return s.thief.List(ctx, &corev1.PodList{}, client.InNamespace(victim))
		},
		"read Secrets": func(ctx context.Context) error {
			return s.thief.Get(ctx, client.ObjectKey{Namespace: victim, Name: "token"}, &corev1.Secret{})
		},
		"delete a Pod":          s.delete("v1", "Pod", "web"),
		"delete an idle member": s.delete(agents, "Sandbox", "spare"),
	}
	return out
}

// deletes are those of Pods, where the role has them.
func (s *theft) deletes() map[string]attempt {
	return map[string]attempt{
		"delete a Pod of a workload's":                                        s.delete("v1", "Pod", "job"),
		"delete the Pod of a Sandbox":                                         s.delete("v1", "Pod", "sandboxed"),
		"delete the Pod of a Sandbox that has no node yet":                    s.delete("v1", "Pod", "waiting"),
		"delete a bare Pod of a pool":                                         s.delete("v1", "Pod", "bare"),
		"delete a Pod with a generated name that nothing controls":            s.delete("v1", "Pod", "released"),
		"delete a Pod that somebody has made by hand, with a name of its own": s.delete("v1", "Pod", "web"),
	}
}

func named(apiVersion, kind, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetName(name)
	if !strings.HasPrefix(apiVersion, "admissionregistration") {
		u.SetNamespace(victim)
	}
	return u
}

func (s *theft) patch(apiVersion, kind, name, patch string) attempt {
	return func(ctx context.Context) error {
		as := types.MergePatchType
		if kind == "Pod" {
			as = types.StrategicMergePatchType
		}
		return s.thief.Patch(ctx, named(apiVersion, kind, name), client.RawPatch(as, []byte(patch)))
	}
}

func (s *theft) delete(apiVersion, kind, name string) attempt {
	return func(ctx context.Context) error {
		return s.thief.Delete(ctx, named(apiVersion, kind, name), client.GracePeriodSeconds(0))
	}
}

func (s *theft) status(name, status string) attempt {
	return func(ctx context.Context) error {
		return s.thief.Status().Patch(ctx, named(agents, "Sandbox", name), client.RawPatch(types.MergePatchType, []byte(`{"status":`+status+`}`)))
	}
}

func (s *theft) revision(name string) attempt {
	return func(ctx context.Context) error {
		return s.thief.Create(ctx, controllerRevision(name, owner("apps/v1", "StatefulSet")))
	}
}

func (s *theft) rewrite(revision string) attempt {
	return func(ctx context.Context) error {
		var stored appsv1.ControllerRevision
		if err := s.thief.Get(ctx, client.ObjectKey{Namespace: victim, Name: revision}, &stored); err != nil {
			return err
		}
		stored.Revision++
		return s.thief.Update(ctx, &stored)
	}
}

func (s *theft) make(o client.Object) attempt {
	return func(ctx context.Context) error {
		o.SetNamespace(victim)
		return s.thief.Create(ctx, o)
	}
}

func (s *theft) sandboxIn(where, name string) attempt {
	return func(ctx context.Context) error {
		return s.thief.Create(ctx, stripped(builders.MakeMember(builders.MakePool(where, "p").Obj(), builders.MakeTemplate(where, "t").Obj()).Name(name).Obj()))
	}
}

func (s *theft) debug(name string) attempt {
	return func(ctx context.Context) error {
		patch := `{"spec":{"ephemeralContainers":[{"name":"d","image":"i"}]}}`
		return s.thief.SubResource("ephemeralcontainers").Patch(ctx, named("v1", "Pod", name), client.RawPatch(types.StrategicMergePatchType, []byte(patch)))
	}
}
