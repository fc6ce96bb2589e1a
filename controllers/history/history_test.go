package history

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/internal/revision"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
)

var (
	sandboxKind  = schema.GroupVersionKind{Group: agentsandbox.CoreGroup, Version: "v1beta1", Kind: "Sandbox"}
	templateKind = schema.GroupVersionKind{Group: agentsandbox.ExtensionsGroup, Version: "v1beta1", Kind: "SandboxTemplate"}
	poolKind     = schema.GroupVersionKind{Group: agentsandbox.ExtensionsGroup, Version: "v1beta1", Kind: "SandboxWarmPool"}
)

// says answers for every namespace, which a pool tightens.
func says(enforced bool) Enforced {
	return func(_ context.Context, _, pool string) (bool, error) { return enforced || pool == "enforce", nil }
}

const limit = 10

func newClient(t *testing.T, objs ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := appsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []schema.GroupVersionKind{sandboxKind, templateKind, poolKind} {
		scheme.AddKnownTypeWithName(kind, &unstructured.Unstructured{})
		scheme.AddKnownTypeWithName(kind.GroupVersion().WithKind(kind.Kind+"List"), &unstructured.UnstructuredList{})
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objs...).Build()
}

func newRecorder(c client.Client, limit int) *Recorder {
	return &Recorder{
		client: c, live: c, templates: templateKind, members: sandboxKind, limit: limit, renders: agentsandbox.Objects{}, pending: newPending(),
		values: &values{enforced: says(true), cached: c, live: c, pools: poolKind, reads: agentsandbox.Objects{}},
	}
}

// see delivers versions of a template as a watch would, then reconciles once.
func see(t *testing.T, r *Recorder, versions ...*unstructured.Unstructured) {
	t.Helper()
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	for _, v := range versions {
		r.note(v, q)
	}
	if q.Len() != 1 {
		t.Fatalf("%d requests for one template", q.Len())
	}
	req, _ := q.Get()
	if _, err := r.Reconcile(t.Context(), req); err != nil {
		t.Fatal(err)
	}
}

func version(image string, rv int64) *unstructured.Unstructured {
	return builders.MakeTemplate("ns", "python").Image(image).RV(rv).Generation(rv).Obj()
}

func hashOf(t *testing.T, template *unstructured.Unstructured) string {
	t.Helper()
	b, err := agentsandbox.RenderMember(template)
	if err != nil {
		t.Fatal(err)
	}
	return b.Hash()
}

// recorded returns the hashes of what is stored, the newest first.
func recorded(t *testing.T, c client.Client) []string {
	t.Helper()
	return hashesOf(t, c, version("any", 1))
}

func TestEveryVersionOfTheWatchIsRecorded(t *testing.T) {
	c := newClient(t)
	a, b, d := version("a", 1), version("b", 2), version("d", 3)
	// The queue merges the three events into one request; the versions must not
	// be merged with it.
	see(t, newRecorder(c, limit), a, b, d)
	want := []string{hashOf(t, d), hashOf(t, b), hashOf(t, a)}
	if diff := cmp.Diff(want, recorded(t, c)); diff != "" {
		t.Errorf("recorded (-want,+got):\n%s", diff)
	}
}

func TestARevisionInForceAgainIsTheNewest(t *testing.T) {
	c := newClient(t)
	r := newRecorder(c, limit)
	see(t, r, version("a", 1), version("b", 2), version("a", 3))
	want := []string{hashOf(t, version("a", 1)), hashOf(t, version("b", 2))}
	if diff := cmp.Diff(want, recorded(t, c)); diff != "" {
		t.Errorf("recorded (-want,+got):\n%s", diff)
	}
}

func TestMetadataAloneIsNoRevision(t *testing.T) {
	c := newClient(t)
	labelled := builders.MakeTemplate("ns", "python").Image("a").RV(2).Generation(2).
		Set(map[string]any{"labels": map[string]any{"x": "y"}}, "spec", "podTemplate", "metadata").Obj()
	see(t, newRecorder(c, limit), version("a", 1), labelled)
	if got := recorded(t, c); len(got) != 1 {
		t.Errorf("recorded %v, want one revision", got)
	}
}

func TestATemplateThatNothingCanBeBuiltFromBlocksNoOther(t *testing.T) {
	c := newClient(t)
	broken := builders.MakeTemplate("ns", "python").Unset("spec", "podTemplate", "spec").RV(2).Generation(2).Obj()
	see(t, newRecorder(c, limit), version("a", 1), broken, version("b", 3))
	if got := recorded(t, c); len(got) != 2 {
		t.Errorf("recorded %v, want two revisions", got)
	}
}

func TestPruneKeepsWhatAMemberHas(t *testing.T) {
	a := version("a", 1)
	member := builders.MakeMember(builders.MakePool("ns", "python").Obj(), a).Name("python-1").
		Label(settings.StampKey, hashOf(t, a)).Obj()
	c := newClient(t, member)
	r := newRecorder(c, 2)
	see(t, r, a, version("b", 2), version("d", 3), version("e", 4))
	want := []string{hashOf(t, version("e", 4)), hashOf(t, version("d", 3)), hashOf(t, a)}
	if diff := cmp.Diff(want, recorded(t, c)); diff != "" {
		t.Errorf("recorded (-want,+got):\n%s", diff)
	}
}

func TestAnotherIncarnationStartsAnew(t *testing.T) {
	c := newClient(t)
	r := newRecorder(c, limit)
	see(t, r, version("a", 1))
	again := builders.MakeTemplate("ns", "python").Image("b").UID("second").RV(9).Obj()
	see(t, r, again)
	list, err := NewReader(c, agentsandbox.Objects{}).Revisions(t.Context(), again)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 1 || list[0].Hash != hashOf(t, again) {
		t.Errorf("the new template has the history of its predecessor: %v", list)
	}
}

// A pool controller that has not noticed goes on building what a template was
// that has been deleted and created again. Its revisions went with it; whoever
// knew them still does.
func TestFormerLivesOfATemplateAreRemembered(t *testing.T) {
	c := newClient(t)
	reader := NewReader(c, agentsandbox.Objects{})
	ask := func(template *unstructured.Unstructured) []string {
		t.Helper()
		list, err := reader.Revisions(t.Context(), template)
		if err != nil {
			t.Fatal(err)
		}
		var hashes []string
		for _, r := range list {
			hashes = append(hashes, r.Hash)
		}
		return hashes
	}
	life := func(uid, image string) *unstructured.Unstructured {
		return builders.MakeTemplate("ns", "python").Image(image).UID(uid).RV(int64(len(uid))).Obj()
	}
	a, b, third := life("first", "a"), life("second", "b"), life("the third", "c")
	see(t, newRecorder(c, limit), a)
	if diff := cmp.Diff([]string{hashOf(t, a)}, ask(a)); diff != "" {
		t.Fatalf("first life (-want,+got):\n%s", diff)
	}
	if err := c.DeleteAllOf(t.Context(), &appsv1.ControllerRevision{}, client.InNamespace("ns")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{hashOf(t, a)}, ask(b)); diff != "" {
		t.Errorf("second life, before it is recorded (-want,+got):\n%s", diff)
	}
	see(t, newRecorder(c, limit), b)
	if diff := cmp.Diff([]string{hashOf(t, b), hashOf(t, a)}, ask(b)); diff != "" {
		t.Errorf("second life (-want,+got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{hashOf(t, b), hashOf(t, a)}, ask(third)); diff != "" {
		t.Errorf("third life (-want,+got):\n%s", diff)
	}
	if other := ask(builders.MakeTemplate("ns", "other").Obj()); len(other) > 0 {
		t.Errorf("another template has %v", other)
	}
}

func TestDigestsNameButDoNotTell(t *testing.T) {
	c := newClient(t)
	r := newRecorder(c, limit)
	r.values.never = true
	secret := builders.MakeTemplate("ns", "python").Image("a").Env("TOKEN", "hunter2").RV(1).Obj()
	see(t, r, secret)

	var stored appsv1.ControllerRevisionList
	if err := c.List(t.Context(), &stored); err != nil {
		t.Fatal(err)
	}
	if raw := string(stored.Items[0].Data.Raw); len(raw) == 0 || strings.Contains(raw, "hunter2") || strings.Contains(raw, `"a"`) {
		t.Errorf("the stored revision tells values: %s", raw)
	}
	list, err := NewReader(c, agentsandbox.Objects{}).Revisions(t.Context(), secret)
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := agentsandbox.RenderMember(secret)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 1 || list[0].Hash != rendered.Hash() || !revision.Equal(list[0].Rendered, rendered, revision.PathSet{}) {
		t.Error("a revision kept as digests does not name the content it was made from")
	}
	if list[0].Template != nil {
		t.Error("a revision kept as digests claims to know the template")
	}
}

func TestRevisionNameFits(t *testing.T) {
	long := make([]byte, maxName)
	for i := range long {
		long[i] = 'a'
	}
	long[maxName-21] = '.'
	const hash = "v1-0123456789abcdef"
	for _, template := range []string{"python", string(long)} {
		got := revisionName(template, "", hash)
		if len(got) > maxName || got[len(got)-len(hash):] != hash || strings.Contains(got, ".-") {
			t.Errorf("revisionName(%q) = %q", template, got)
		}
	}
}

// What tenants write decides how large a revision is, so what is remembered of
// all of them is bounded in bytes.
func TestWhatIsReadOfHistoryIsBoundedInBytes(t *testing.T) {
	c := newClient(t)
	r := NewReader(c, agentsandbox.Objects{})
	for i := range int64(30) {
		template := version(strings.Repeat("x", 100_000)+fmt.Sprint(i), i+1)
		see(t, newRecorder(c, 1), template)
		if _, err := r.Revisions(t.Context(), template); err != nil {
			t.Fatal(err)
		}
		if decoded, lives := r.decoded.Bytes(), r.lives.Bytes(); decoded > decodedBytes || lives > livesBytes || lives > formerBytes+1000 {
			t.Fatalf("after %d revisions %d bytes of them are decoded, and %d of one template remembered", i+1, decoded, lives)
		}
	}
	if r.decoded.Len() == 0 {
		t.Error("nothing is remembered")
	}
}
