package app

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/freshbind/freshbind/internal/cli"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/internal/release"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/clitest"
	"github.com/freshbind/freshbind/webhooks"
)

// installed is Freshbind in a cluster, and what is not Freshbind's but looks so.
func installed() []client.Object {
	called := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
	labels := map[string]string{"app": "freshbind"}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "own", Name: "freshbind"}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: ptr.To("a"), RenewTime: ptr.To(metav1.NewMicroTime(clitest.Now)), LeaseDurationSeconds: ptr.To(int32(15)),
	}}
	return []client.Object{
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: called("freshbind")},
		&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: called("freshbind")},
		&admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: called("freshbind-stamp")},
		&admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: called("freshbind-stamp-by-floor-12")},
		&admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: called("freshbind-of-another-team")},
		&appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "own", Name: "freshbind"},
			Spec:       appsv1.DeploymentSpec{Replicas: ptr.To(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: labels}},
		},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "own", Name: "freshbind-1", Labels: labels}},
		lease,
	}
}

// hiddenMember is the stale member of halfway, hidden.
func hiddenMember(t *testing.T) []client.Object {
	t.Helper()
	objs := halfway(t, "enforce")
	for _, o := range objs {
		if o.GetName() == "a-1" {
			labels := o.GetLabels()
			delete(labels, agentsandbox.TemplateRefHashLabel)
			o.SetLabels(labels)
		}
	}
	return objs
}

func (t *terminal) releases(args ...string) (out, errText string, code int) {
	t.t.Helper()
	return t.run(append([]string{"release"}, args...)...)
}

func (t *terminal) there(obj client.Object, namespace, name string) bool {
	t.t.Helper()
	err := t.cluster.Client.Get(t.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, obj)
	if client.IgnoreNotFound(err) != nil {
		t.t.Fatal(err)
	}
	return err == nil
}

// First nothing is refused any more, then nobody hides members, then they are
// shown.
func TestReleaseStopsFreshbindFirst(t *testing.T) {
	term := newTerminal(t, append(hiddenMember(t), installed()...)...)
	var order []string
	base := term.cluster.Client
	term.cluster.Client = interceptor.NewClient(base, interceptor.Funcs{
		Delete: func(ctx context.Context, w client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			order = append(order, "delete "+o.GetObjectKind().GroupVersionKind().Kind)
			return w.Delete(ctx, o, opts...)
		},
		SubResourceUpdate: func(ctx context.Context, w client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			order = append(order, sub)
			// The Pods go when the Deployment says so.
			if err := w.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace("own")); err != nil {
				return err
			}
			return w.SubResource(sub).Update(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, w client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			order = append(order, "show")
			return w.Patch(ctx, o, p, opts...)
		},
	})
	out, errText, code := term.releases("-A", "--stop=own/freshbind")
	if code != 0 {
		t.Fatalf("code %d, %s\n%s", code, errText, out)
	}
	got := strings.Join(order, ", ")
	want := "delete ValidatingWebhookConfiguration, delete MutatingWebhookConfiguration, delete ValidatingAdmissionPolicyBinding, " +
		"delete ValidatingAdmissionPolicy, scale, delete Lease, delete Lease, show"
	if !strings.HasPrefix(got, want) {
		t.Errorf("order is %s,\nwant %s", got, want)
	}
	var d appsv1.Deployment
	if !term.there(&d, "own", "freshbind") || *d.Spec.Replicas != 0 {
		t.Errorf("the Deployment has %d replicas, want 0", *d.Spec.Replicas)
	}
	if !term.there(&admissionregistrationv1.ValidatingAdmissionPolicy{}, "", "freshbind-of-another-team") {
		t.Error("a policy of somebody else is gone")
	}
	for _, line := range []string{"Deployment own/freshbind scaled to 0", "SandboxWarmPool prod/a: 1 members shown, 1 offered again", "left: 1 namespaces"} {
		if !strings.Contains(out, line) {
			t.Errorf("%q is not in\n%s", line, out)
		}
	}
}

// A cluster can have members of two platforms.
func TestReleaseLooksAtEveryPlatform(t *testing.T) {
	set := clitest.Box("SandboxSet", "boxes", map[string]any{"replicas": int64(1), "template": clitest.BoxPod("v1")})
	set.SetAnnotations(map[string]string{settings.RolloutStateKey: "Progressing"})
	objs := append(append(hiddenMember(t), set), clitest.BoxMember(set, "box", "v1")...)
	term := newTerminal(t)
	term.cluster = clitest.NewBoth(t, interceptor.Funcs{}, objs...)
	out, errText, code := term.releases("-A")
	if code != 0 {
		t.Fatalf("code %d, %s\n%s", code, errText, out)
	}
	for _, line := range []string{
		"SandboxWarmPool prod/a: 1 members shown, 1 offered again", "SandboxSet prod/boxes: 0 members shown, 1 offered again",
		"marks removed from 1 objects of kind SandboxSet.agents.kruise.io",
	} {
		if !strings.Contains(out, line) {
			t.Errorf("%q is not in\n%s", line, out)
		}
	}
}

// What was done is a line for each pool and for each kind, in order.
func TestReleaseReport(t *testing.T) {
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	o := newRelease(env{streams: streams})
	if err := o.print(release.Report{
		Pools:    []*release.Pool{{Kind: "SandboxWarmPool", Namespace: "prod", Name: "a", Shown: 2, Offered: 1}},
		Unmarked: map[string]int{"SandboxWarmPool.extensions.agents.x-k8s.io": 1, "Sandbox.agents.x-k8s.io": 4},
		Failed:   3,
		Failures: []string{"Sandbox prod/b: forbidden"},
		Left:     []string{"1 namespaces with your label"},
	}); err != nil {
		t.Fatal(err)
	}
	want := `SandboxWarmPool prod/a: 2 members shown, 1 offered again
marks removed from 4 objects of kind Sandbox.agents.x-k8s.io
marks removed from 1 objects of kind SandboxWarmPool.extensions.agents.x-k8s.io
failed: Sandbox prod/b: forbidden
failed: 2 more
left: 1 namespaces with your label
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error("report (-want +got):\n" + diff)
	}
}

// A dry run takes nothing away, and says what it would.
func TestReleaseDryRun(t *testing.T) {
	for _, how := range []string{"client", "server"} {
		term := newTerminal(t, append(hiddenMember(t), installed()...)...)
		out, errText, code := term.releases("-A", "--stop=own/freshbind", "--dry-run="+how)
		if code != 0 || !strings.Contains(out, "1 members shown") || !strings.Contains(out, "dry run") {
			t.Errorf("%s: code %d, %s\n%s", how, code, errText, out)
		}
		var d appsv1.Deployment
		member, err := term.cluster.Get(t.Context(), agentsandbox.Sandboxes, "prod", "a-1")
		if err != nil {
			t.Fatal(err)
		}
		if !term.there(&d, "own", "freshbind") || *d.Spec.Replicas != 2 || agentsandbox.Shown(member) ||
			!term.there(&admissionregistrationv1.ValidatingWebhookConfiguration{}, "", "freshbind") {
			t.Errorf("%s: something was changed", how)
		}
	}
}

func TestReleaseWarnsOfALeader(t *testing.T) {
	term := newTerminal(t, append(hiddenMember(t), installed()...)...)
	if _, errText, code := term.releases("-n", "prod"); code != 0 || !strings.Contains(term.errOut.String(), "hides members again") {
		t.Errorf("code %d, %s, warned: %q", code, errText, term.errOut.String())
	}
}

// What is refused for good holds up nothing for ever.
func TestReleaseUnattended(t *testing.T) {
	var asked atomic.Int32
	refuse := func(err error) interceptor.Funcs {
		return interceptor.Funcs{Patch: func(ctx context.Context, w client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if o.GetName() != "a-1" {
				return w.Patch(ctx, o, p, opts...)
			}
			asked.Add(1)
			return err
		}}
	}
	forbidden := apierrors.NewForbidden(agentsandbox.Sandboxes, "a-1", nil)
	for name, tc := range map[string]struct {
		args     []string
		err      error
		wantCode int
		wantErr  string
		wantAsks int32
	}{
		"refused, with somebody there": {nil, forbidden, cli.ExitFailed, "trying again", 3},
		"refused, with nobody there":   {[]string{"--unattended"}, forbidden, 0, "gave up: 1 objects", 3},
	} {
		t.Run(name, func(t *testing.T) {
			term := newTerminal(t, append(hiddenMember(t), installed()...)...)
			asked.Store(0)
			term.cluster.Client = interceptor.NewClient(term.cluster.Client, refuse(tc.err))
			out, errText, code := term.releases(append([]string{"-A"}, tc.args...)...)
			if code != tc.wantCode || !strings.Contains(term.errOut.String(), tc.wantErr) {
				t.Errorf("code %d, %s, warned: %q\n%s", code, errText, term.errOut.String(), out)
			}
			if asked.Load() != tc.wantAsks {
				t.Errorf("asked %d times, want %d", asked.Load(), tc.wantAsks)
			}
		})
	}
}

func TestReleaseRefusesWhatItDoesNotUnderstand(t *testing.T) {
	for name, args := range map[string][]string{
		"a dry run":                 {"-A", "--dry-run=maybe"},
		"no namespace":              {"-A", "--stop=freshbind"},
		"a path":                    {"-A", "--stop=a/b/c"},
		"one namespace, all guards": {"-n", "prod", "--stop=own/freshbind"},
		"no time":                   {"-A", "--timeout=0s"},
		"an argument":               {"pool/python"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, errText, code := newTerminal(t).releases(args...); code == 0 || errText == "" {
				t.Errorf("code %d, error %q", code, errText)
			}
		})
	}
}

// Whatever the chart and webhook-config may install goes, and nothing is left
// that refuses writes.
func TestReleaseDeletesWhatIsInstalled(t *testing.T) {
	everywhere := webhooks.Scope{
		EnforcedByDefault: true, Restamp: true, Enforced: []metav1.LabelSelector{{MatchLabels: map[string]string{"env": "prod"}}},
	}
	var objs []client.Object
	for _, scope := range []webhooks.Scope{{}, everywhere} {
		o := &webhookConfigOptions{scope: scope, mutating: true, kruise: true}
		for _, obj := range o.objects() {
			if !slices.ContainsFunc(objs, func(there client.Object) bool { return keyOf(there) == keyOf(obj) }) {
				objs = append(objs, obj)
			}
		}
	}
	if len(objs) < 10 {
		t.Fatalf("only %d objects are installed", len(objs))
	}
	term := newTerminal(t, objs...)
	if out, errText, code := term.releases("-A", "--stop=own/freshbind"); code != 0 {
		t.Fatalf("code %d, %s\n%s", code, errText, out)
	}
	for _, obj := range objs {
		if term.there(obj.DeepCopyObject().(client.Object), "", obj.GetName()) {
			t.Errorf("%s stays", keyOf(obj))
		}
	}
}

func keyOf(obj client.Object) string {
	return obj.GetObjectKind().GroupVersionKind().Kind + " " + obj.GetName()
}

// What a release does to each object: hidden members are shown, ready ones are
// put before claims again, and what is somebody else's is left alone.
func TestReleaseOfEachObject(t *testing.T) {
	v1, pool := templateAt("v1"), poolNamed("a").Annotation(settings.Domain+"/rollout-state", "Progressing")
	member := func() *builders.Sandbox { return memberNamed(pool, v1, "m").Label(settings.StampKey, "v1-0") }
	hidden := func(s *builders.Sandbox) *builders.Sandbox { return s.NoLabel(agentsandbox.TemplateRefHashLabel) }
	claim := metav1.OwnerReference{APIVersion: "extensions.agents.x-k8s.io/v1beta1", Kind: "SandboxClaim", Name: "c", UID: "c", Controller: ptr.To(true)}
	for name, tc := range map[string]struct {
		member         *builders.Sandbox
		shown, offered bool
		wantShown      bool
	}{
		"hidden":           {member: hidden(member()), shown: true, wantShown: true},
		"hidden, starting": {member: hidden(member()).Ready(false), shown: true, wantShown: true},
		"ready":            {member: member(), offered: true, wantShown: true},
		"starting":         {member: member().Ready(false), wantShown: true},
		"claimed":          {member: hidden(member()).Owners(claim)},
		"owned by a claim too": {wantShown: true, member: member().Owners(
			*metav1.NewControllerRef(pool.Obj(), pool.Obj().GroupVersionKind()),
			metav1.OwnerReference{APIVersion: claim.APIVersion, Kind: claim.Kind, Name: claim.Name, UID: claim.UID},
		)},
		"nobody's":      {member: hidden(member()).Owners()},
		"being deleted": {member: hidden(member()).Set([]any{"test/wait"}, "metadata", "finalizers").Deleting(clitest.Now)},
	} {
		t.Run(name, func(t *testing.T) {
			term := newTerminal(t, v1, pool.Obj(), namespaceIn("enforce"), tc.member.Obj())
			out, errText, code := term.releases("-n", "prod")
			if code != 0 {
				t.Fatalf("code %d, %s\n%s", code, errText, out)
			}
			want := fmt.Sprintf("SandboxWarmPool prod/a: %d members shown, %d offered again", count(tc.shown), count(tc.offered))
			if !strings.Contains(out, want) {
				t.Errorf("%q is not in\n%s", want, out)
			}
			got, err := term.cluster.Get(t.Context(), agentsandbox.Sandboxes, "prod", "m")
			if err != nil {
				t.Fatal(err)
			}
			if agentsandbox.Shown(got) != tc.wantShown {
				t.Errorf("shown is %v, want %v", agentsandbox.Shown(got), tc.wantShown)
			}
			if stamp, there := got.GetLabels()[settings.StampKey]; there {
				t.Errorf("the stamp %q stays", stamp)
			}
			if is, yours := term.annotation("a", settings.Domain+"/rollout-state"), term.annotation("a", settings.StrategyKey); is != "" || yours == "" {
				t.Errorf("rollout-state is %q, and the user's strategy %q", is, yours)
			}
		})
	}
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

// A manager that was kept to some namespaces has touched no other.
func TestReleaseKeepsToTheConfiguredNamespaces(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	for namespace, want := range map[string]string{"prod": "1 members shown", "other": "nothing to release"} {
		text := "apiVersion: config.freshbind.dev/v1alpha1\nkind: FreshbindConfiguration\nnamespaces: [" + namespace + "]\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, errText, code := newTerminal(t, hiddenMember(t)...).releases("-A", "--config="+file)
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("%s: code %d, %s: %q is not in\n%s", namespace, code, errText, want, out)
		}
	}
}
