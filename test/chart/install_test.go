package chart

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/freshbind/freshbind/test/scenario"
)

// Whoever installs the chart with its defaults finds every pool as it was, also
// after a template change that Freshbind judges.
func TestInstallingChangesNothing(t *testing.T) {
	w := sharedWorld(t)
	quiet, _, _ := w.pool(t, nil)
	before := w.atRest(t, quiet.Name)
	w.install(t)
	used, p, _ := w.pool(t, nil)
	_, err := used.SetImage(t.Context(), p.Template, "sandbox:v2")
	w.must(t, err)
	w.must(t, used.CreateClaims(t.Context(), p, "c1", "c2", "c3"))
	w.must(t, used.WaitClaims(t.Context(), within, "c1", "c2", "c3"))
	w.eventually(t, "Freshbind has judged what the claims got", func(ctx context.Context) (string, bool) {
		judged := 0
		for _, r := range w.replicas {
			text, err := r.metrics(ctx)
			if err != nil {
				return err.Error(), false
			}
			judged += strings.Count(text, "\nfreshbind_bind_verdicts_total{")
		}
		return fmt.Sprintf("%d kinds of verdicts", judged), judged > 0
	})
	w.onlyDigestsCame(t, quiet.Name, before)
	for _, r := range w.requests(t) {
		ours := r.ObjectRef.Namespace == quiet.Name || r.ObjectRef.Namespace == used.Name
		if ours && slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, r.Verb) && !r.harmless() {
			t.Errorf("in mode audit Freshbind has written: %s", r)
		}
	}
}

// With namespaces named, the others are as without Freshbind, and it has no rights
// there (TestRolesAreWhatIsUsed).
func TestSomeNamespacesOnly(t *testing.T) {
	w := sharedWorld(t)
	inside, _, members := w.pool(t, scenario.Enforce())
	w.install(t, set("namespaces={"+inside.Name+"}")...)
	w.must(t, inside.WaitGuarded(t.Context(), within))
	guarded := &binds{ns: inside, member: members[0].Name}
	if guarded.bind(t.Context()); len(guarded.lost()) > 0 {
		t.Error(guarded.result())
	}
	outside, _, members := w.pool(t, scenario.Enforce())
	err := (&binds{ns: outside, member: members[0].Name}).try(t.Context(), "u")
	if !errors.Is(err, errAllowed) {
		t.Errorf("a bind outside of the named namespaces: %v, want none of Freshbind's business", err)
	}
}

// What Helm can do to a release, with claims served after each step.
func TestUpgradeRollbackUninstall(t *testing.T) {
	w := sharedWorld(t)
	w.install(t)
	ns, p, _ := w.pool(t, scenario.Enforce())
	w.must(t, ns.WaitGuarded(t.Context(), within))
	claims := 0
	claim := func(step string) {
		t.Helper()
		claims++
		name := fmt.Sprintf("c%d", claims)
		w.must(t, ns.CreateClaims(t.Context(), p, name))
		if err := ns.WaitClaims(t.Context(), within, name); err != nil {
			t.Fatalf("after %s: %v", step, err)
		}
	}
	claim("install")
	for _, step := range [][]string{
		append([]string{"upgrade", release, w.helm.chart, "--wait", helmTimeout},
			set("replicas=3", "webhooks.openNamespaces={lab}", "config.defaults.enforcement=enforce", "flowSchema.enabled=false", "config.replacementBudget=3")...),
		{"upgrade", release, w.helm.chart, "--wait", helmTimeout, "--reset-values"},
		{"rollback", release, "2", "--wait", helmTimeout},
		{"rollback", release, "1", "--wait", helmTimeout},
	} {
		if out, err := w.helm.run(t.Context(), step...); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		claim(step[0])
	}
	w.must(t, ns.WaitGuarded(t.Context(), within))
	w.leaveInOrder(t)
	w.nothingLeft(t)
	claim("uninstall")
}

// staysWithoutHelm: what holds Freshbind's user is not for Freshbind to tie to a namespace.
const staysWithoutHelm = "freshbind-own-"

// nothingLeft waits until nothing of the release stands in the cluster, but for what has one of
// these prefixes.
func (w *world) nothingLeft(t *testing.T, but ...string) {
	t.Helper()
	w.eventually(t, "nothing of the release is left", func(ctx context.Context) (string, bool) {
		installed, err := w.admission(ctx, but...)
		if err != nil {
			return err.Error(), false
		}
		var left []string
		for _, o := range installed {
			left = append(left, nameOf(o))
		}
		return strings.Join(left, ", "), len(left) == 0
	})
}

func nameOf(o unstructured.Unstructured) string { return o.GetKind() + "/" + o.GetName() }

// admission are the webhook configurations and policies of the release, but for those that have
// one of these prefixes.
func (w *world) admission(ctx context.Context, but ...string) ([]unstructured.Unstructured, error) {
	c, err := dynamic.NewForConfig(w.cluster.Config())
	if err != nil {
		return nil, err
	}
	var out []unstructured.Unstructured
	for _, resource := range []string{
		"mutatingwebhookconfigurations", "validatingwebhookconfigurations",
		"validatingadmissionpolicies", "validatingadmissionpolicybindings",
		"mutatingadmissionpolicies", "mutatingadmissionpolicybindings",
	} {
		r := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: resource}
		list, err := c.Resource(r).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/instance=" + release})
		if apierrors.IsNotFound(err) && strings.HasPrefix(resource, "mutatingadmission") {
			// Before Kubernetes 1.36 there are none.
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, o := range list.Items {
			if !slices.ContainsFunc(but, func(prefix string) bool { return strings.HasPrefix(o.GetName(), prefix) }) {
				out = append(out, o)
			}
		}
	}
	return out, nil
}
