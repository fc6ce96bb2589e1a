package integration

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/freshbind/freshbind/internal/platform/kruise"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/controlplane"
	"github.com/freshbind/freshbind/test/fakekruise"
	"github.com/freshbind/freshbind/test/fixture"
	"github.com/freshbind/freshbind/test/scenario"
)

const (
	kruiseOwner   = kruise.Group + "/owner"
	kruiseCleanup = kruise.Group + "/cleanup-enabled"
	kruiseRole    = "freshbind-kruise"
	kruiseSpace   = "boxes"

	boxBefore, boxAfter = "registry.example.com/box:1", "registry.example.com/box:2"
)

// kruiseWorld is a cluster with the kinds of OpenKruise Agents, whose controllers the
// test plays.
type kruiseWorld struct {
	*empty
	c client.Client
	// doubles are between the API server and upstream's controllers and server.
	doubles []*controlplane.Proxy
}

// later undoes something when the test ends, before the cluster goes.
func (w *kruiseWorld) later(undo func(context.Context) error) {
	w.t.Helper()
	w.t.Cleanup(func() {
		if err := client.IgnoreNotFound(undo(context.WithoutCancel(w.t.Context()))); err != nil {
			w.t.Error(err)
		}
	})
}

func (w *kruiseWorld) create(obj client.Object) {
	w.t.Helper()
	w.later(func(ctx context.Context) error { return w.c.Delete(ctx, obj) })
	w.eventually("creating "+obj.GetName(), func() error {
		err := w.c.Create(w.t.Context(), obj)
		if err != nil && !apierrors.IsInternalError(err) && !apierrors.IsForbidden(err) {
			w.t.Fatalf("creating %T %s: %v", obj, obj.GetName(), err)
		}
		return err
	})
}

// eventually tries until there is no error, and fails with the last one.
func (w *kruiseWorld) eventually(what string, try func() error) {
	w.t.Helper()
	var last error
	err := scenario.Poll(w.t.Context(), within, func(context.Context) (bool, error) {
		last = try()
		return last == nil, w.guard.Err()
	})
	if err != nil {
		w.t.Fatalf("waiting for %s: %v: %v", what, err, last)
	}
}

// serve has the API server serve the kinds, and lets Freshbind read them.
func (w *kruiseWorld) serve() {
	w.t.Helper()
	w.create(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: kruiseRole}, Rules: append(kruise.Rights(), rbacv1.PolicyRule{
		APIGroups: []string{"admissionregistration.k8s.io"}, Resources: []string{"validatingwebhookconfigurations"}, ResourceNames: []string{"freshbind-kruise"}, Verbs: []string{"get", "patch"},
	})})
	w.create(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: kruiseRole}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: kruiseRole},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: fixture.User}},
	})
	crds, err := apiextensions.NewForConfig(w.cluster.Config())
	w.must(err)
	for _, crd := range fakekruise.CRDs() {
		w.later(func(ctx context.Context) error {
			return crds.CustomResourceDefinitions().Delete(ctx, crd.Name, metav1.DeleteOptions{})
		})
	}
	w.must(w.cluster.InstallCRDs(w.t.Context(), fakekruise.CRDs()...))
}

// printed are the objects that the program prints for the API server.
func (w *kruiseWorld) printed(args ...string) []*unstructured.Unstructured {
	w.t.Helper()
	ca := filepath.Join(w.t.TempDir(), "ca.crt")
	w.must(os.WriteFile(ca, w.guard.CA(), 0o600))
	text, err := exec.CommandContext(w.t.Context(), w.guard.Program(), append([]string{"webhook-config", "--url=" + w.guard.WebhookURL(), "--ca-file=" + ca}, args...)...).Output()
	w.must(err)
	var out []*unstructured.Unstructured
	for document := range strings.SplitSeq("\n"+string(text), "\n---\n") {
		u := &unstructured.Unstructured{}
		w.must(yaml.Unmarshal([]byte(document), &u.Object))
		if u.Object != nil {
			delete(u.Object, "status")
			out = append(out, u)
		}
	}
	return out
}

// ask makes the API server ask Freshbind about these kinds.
func (w *kruiseWorld) ask() {
	w.t.Helper()
	for _, obj := range w.printed("--platform-kruise") {
		if strings.Contains(obj.GetName(), "-kruise") {
			w.create(obj)
		}
	}
}

// known are the names of what the API server was told of OpenKruise Agents. What holds
// Freshbind to revisions of templates names those of all platforms.
func (w *kruiseWorld) known() []string {
	w.t.Helper()
	var names []string
	for _, kind := range []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"} {
		var list unstructured.UnstructuredList
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: kind + "List"})
		w.must(w.c.List(w.t.Context(), &list))
		for i := range list.Items {
			if list.Items[i].GetName() == "freshbind-own-revisions" {
				continue
			}
			if text, err := yaml.Marshal(list.Items[i].Object); err != nil || strings.Contains(string(text), "kruise") {
				names = append(names, kind+" "+list.Items[i].GetName())
			}
		}
	}
	return names
}

func kruiseObject(kind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: kruise.Group, Version: "v1alpha1", Kind: kind})
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

func boxTemplate(image string) map[string]any {
	return map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"app": "box"}},
		"spec":     map[string]any{"containers": []any{map[string]any{"name": "main", "image": image}}},
	}
}

// set creates a SandboxSet, in line or with a reference to a template of that name.
func (w *kruiseWorld) set(namespace, name, ref string) *unstructured.Unstructured {
	w.t.Helper()
	spec := map[string]any{"replicas": int64(3), "template": boxTemplate(boxBefore)}
	if ref != "" {
		w.create(kruiseObject("SandboxTemplate", namespace, ref, map[string]any{"template": boxTemplate(boxBefore)}))
		spec = map[string]any{"replicas": int64(3), "templateRef": map[string]any{"name": ref}}
	}
	set := kruiseObject("SandboxSet", namespace, name, spec)
	w.create(set)
	return set
}

// edit has what is made from a SandboxSet or a template from now on run another image.
func (w *kruiseWorld) edit(kind, namespace, name string) {
	w.t.Helper()
	w.changed(kruiseObject(kind, namespace, name, nil), func(obj *unstructured.Unstructured) {
		obj.Object["spec"].(map[string]any)["template"] = boxTemplate(boxAfter)
	})
}

// claim creates a SandboxClaim.
func (w *kruiseWorld) claim(namespace, name, of string) *unstructured.Unstructured {
	w.t.Helper()
	c := kruiseObject("SandboxClaim", namespace, name, map[string]any{"templateName": of, "replicas": int64(1)})
	w.create(c)
	return c
}

func kruiseOwnedBy(of client.Object) []metav1.OwnerReference {
	gvk := of.GetObjectKind().GroupVersionKind()
	return []metav1.OwnerReference{{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Name: of.GetName(), UID: of.GetUID(), Controller: ptr.To(true)}}
}

// member is a Sandbox of a SandboxSet as its controller makes it, with its Pod.
func (w *kruiseWorld) member(set *unstructured.Unstructured, name string) *unstructured.Unstructured {
	w.t.Helper()
	m := kruiseMember(set, name)
	w.create(m)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: set.GetNamespace(), Name: name, OwnerReferences: kruiseOwnedBy(m)},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: boxBefore}}},
	}
	w.create(pod)
	w.status(m, map[string]any{"phase": "Running", "podInfo": map[string]any{"podUID": string(pod.UID), "podIP": ""}})
	return m
}

// kruiseMember is a Sandbox that a SandboxSet is about to have.
func kruiseMember(set *unstructured.Unstructured, name string) *unstructured.Unstructured {
	spec := maps.Clone(set.Object["spec"].(map[string]any))
	delete(spec, "replicas")
	m := kruiseObject("Sandbox", set.GetNamespace(), name, spec)
	m.SetLabels(map[string]string{
		kruise.Group + "/sandbox-claimed": "false", kruise.Group + "/sandbox-pool": set.GetName(),
		kruise.Group + "/sandbox-template": set.GetName(), kruise.Group + "/template-hash": "abc",
	})
	m.SetOwnerReferences(kruiseOwnedBy(set))
	return m
}

// status writes a Sandbox's status.
func (w *kruiseWorld) status(m *unstructured.Unstructured, status map[string]any) {
	w.t.Helper()
	w.eventually("the status of "+m.GetName(), func() error {
		now := w.stored(m)
		now.Object["status"] = status
		return w.c.Status().Update(w.t.Context(), now)
	})
}

// stored is an object as it is now.
func (w *kruiseWorld) stored(obj *unstructured.Unstructured) *unstructured.Unstructured {
	w.t.Helper()
	out := &unstructured.Unstructured{}
	out.SetGroupVersionKind(obj.GroupVersionKind())
	w.must(w.c.Get(w.t.Context(), client.ObjectKeyFromObject(obj), out))
	return out
}

// changed writes an object as somebody else changes it.
func (w *kruiseWorld) changed(m *unstructured.Unstructured, change func(*unstructured.Unstructured)) {
	w.t.Helper()
	w.eventually("a change of "+m.GetName(), func() error {
		now := w.stored(m)
		change(now)
		return w.c.Update(w.t.Context(), now)
	})
}

// answered makes a write until it is judged, as stage.answered does, and again when nobody
// answered at all.
func (w *kruiseWorld) answered(about string, write func() error) error {
	w.t.Helper()
	var answer error
	w.eventually("an answer for "+about, func() error {
		if answer = write(); saysNothing(answer) || apierrors.IsInternalError(answer) {
			return answer
		}
		return nil
	})
	return answer
}

// take is the one PUT with which a member is taken: for a claim, or by a user of E2B
// where it has no name.
func (w *kruiseWorld) take(m *unstructured.Unstructured, owner, claim string, opts ...client.UpdateOption) error {
	w.t.Helper()
	return w.answered(m.GetName(), func() error {
		return w.c.Update(w.t.Context(), kruiseTaken(w.stored(m), owner, claim), opts...)
	})
}

func kruiseTaken(m *unstructured.Unstructured, owner, claim string) *unstructured.Unstructured {
	out := m.DeepCopy()
	out.SetOwnerReferences(nil)
	labels, annotations := out.GetLabels(), map[string]string{}
	maps.Copy(annotations, out.GetAnnotations())
	labels[kruise.Group+"/sandbox-claimed"] = "true"
	if claim != "" {
		labels[kruise.Group+"/claim-name"] = claim
	}
	if owner != "" {
		annotations[kruiseOwner], annotations[kruise.Group+"/lock"] = owner, "lock-of-"+owner
	}
	out.SetLabels(labels)
	out.SetAnnotations(annotations)
	spec := out.Object["spec"].(map[string]any)
	spec["shutdownTime"] = "2099-01-01T00:00:00Z"
	if spec["template"] != nil {
		_ = unstructured.SetNestedField(spec, owner, "template", "metadata", "labels", kruiseOwner)
	}
	return out
}

// refused is nil when this is a denial for that reason, in the one status after which
// claims go on to another member.
func refused(err error, reason string) error {
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "denied the request: "+reason) {
		return fmt.Errorf("the answer is %q, want 409 Conflict with %s", fmt.Sprint(err), reason)
	}
	return nil
}

// namespace creates one.
func (w *kruiseWorld) namespace(name string, labels map[string]string) {
	w.t.Helper()
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})
}

var kruiseEnforced = map[string]string{settings.EnforcementKey: string(settings.Enforce)}
