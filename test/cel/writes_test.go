package cel

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/webhooks"
)

var (
	poolRef   = builders.ControllerRef(pool)
	claimRef  = builders.ControllerRef(claim)
	otherRef  = builders.ControllerRef(another)
	nobody    = of("example.com/v1", "Nobody", claimRef)
	foreigner = metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Job", Name: "j", UID: "uid-job", Controller: claimRef.Controller}
	slashless = of(agentsandbox.ExtensionsGroup, "SandboxClaim", claimRef)
	earlier   = of(agentsandbox.ExtensionsGroup+"/v1alpha1", "SandboxClaim", claimRef)
)

// judgedBy are the webhooks that ask the guard, by what it takes a write for.
var judgedBy = map[freshness.Operation]string{
	freshness.Bind: webhooks.BindHook.Name, freshness.ColdStart: webhooks.ColdStartHook.Name, freshness.WarmStart: webhooks.ColdStartHook.Name,
	freshness.Birth: webhooks.BirthHook.Name, freshness.ForeignController: webhooks.ForeignControllerHook.Name, freshness.Return: webhooks.BindHook.Name,
}

// operation is what the guard takes a write for; "" for nothing.
func (w write) operation() freshness.Operation {
	op := admissionv1.Create
	if w.old != nil {
		op = admissionv1.Update
	}
	got, _ := (&agentsandbox.Platform{}).Classify(op, w.old, w.obj)
	return got.Operation
}

// judged leaves out webhooks that do not ask the guard.
func judged(asked []string) []string {
	var out []string
	for _, name := range asked {
		for _, op := range []freshness.Operation{freshness.Bind, freshness.ColdStart, freshness.Birth, freshness.ForeignController} {
			if judgedBy[op] == name {
				out = append(out, name)
			}
		}
	}
	return out
}

func wanted(op freshness.Operation) []string {
	if op == "" {
		return nil
	}
	return []string{judgedBy[op]}
}

func TestWrites(t *testing.T) {
	r := render(t)
	marked := func(refs ...metav1.OwnerReference) *builders.Sandbox {
		return builders.SandboxFrom(owned(refs...)).Annotation(settings.BoundToKey, "uid-claim")
	}
	const owners, used, stamp, born = "freshbind-owners", "freshbind-used", "freshbind-stamp", "freshbind-born"
	made := builders.SandboxFrom(member).Annotation(settings.CreatedByKey, settings.CreatedByPool).Obj()
	cases := map[string]struct {
		write
		want    freshness.Operation
		refused []string
	}{
		"bind":                                     {write{member, owned(claimRef), "tenant"}, freshness.Bind, nil},
		"bind by an earlier version":               {write{member, owned(earlier), "tenant"}, freshness.Bind, nil},
		"bind, not as controller":                  {write{member, owned(plain(claimRef)), "tenant"}, freshness.Bind, nil},
		"bind beside the pool":                     {write{member, owned(claimRef, plain(poolRef)), "tenant"}, freshness.Bind, nil},
		"bound, written to":                        {write{owned(claimRef), builders.SandboxFrom(owned(claimRef)).Label("a", "b").Obj(), "tenant"}, "", nil},
		"given to another kind with a claim's UID": {write{member, owned(nobody), "tenant"}, freshness.ForeignController, []string{owners}},
		"then to that claim":                       {write{owned(nobody), owned(claimRef), "tenant"}, freshness.Bind, nil},
		"given to a version without a group":       {write{member, owned(slashless), "tenant"}, freshness.ForeignController, []string{owners}},
		"nobody's, given to another kind":          {write{owned(), owned(foreigner), "tenant"}, freshness.ForeignController, nil},
		"another kind's, written to":               {write{owned(foreigner), builders.SandboxFrom(owned(foreigner)).Label("a", "b").Obj(), "tenant"}, "", nil},
		"another kind's, now as controller":        {write{owned(plain(foreigner)), owned(foreigner), "tenant"}, freshness.ForeignController, nil},
		"a claim's, another kind has its UID":      {write{owned(claimRef), owned(nobody), "tenant"}, freshness.ForeignController, []string{owners, used}},
		"a claim's, another kind with its UID too": {write{owned(claimRef), owned(claimRef, plain(nobody)), "tenant"}, "", []string{owners}},
		"used, another kind has its claim's UID":   {write{marked().Obj(), marked(nobody).Obj(), "tenant"}, freshness.ForeignController, []string{owners}},
		"used, upstream says whose":                {write{builders.SandboxFrom(owned()).Label(agentsandbox.PodClaimLabel, "uid-claim").Obj(), owned(nobody), "tenant"}, freshness.ForeignController, []string{owners}},
		"used, given to something else":            {write{marked().Obj(), marked(foreigner).Obj(), "tenant"}, freshness.ForeignController, nil},
		"two claims at once":                       {write{member, owned(plain(claimRef), otherRef), "tenant"}, freshness.Bind, nil},
		"a second claim":                           {write{marked(claimRef).Obj(), marked(claimRef, plain(otherRef)).Obj(), "tenant"}, freshness.Bind, nil},
		"another plain owner":                      {write{member, owned(poolRef, plain(foreigner)), "tenant"}, "", nil},
		"orphaned by its pool":                     {write{member, owned(), "tenant"}, "", nil},
		"taken off its claim, no mark":             {write{owned(claimRef), owned(), "tenant"}, "", []string{used}},
		"taken off its claim, with the mark":       {write{marked(claimRef).Obj(), marked().Obj(), "tenant"}, "", nil},
		"taken off its claim, mark and all":        {write{marked(claimRef).Obj(), owned(), "tenant"}, "", []string{used}},
		"taken over without a mark":                {write{owned(claimRef), owned(otherRef), "tenant"}, freshness.Bind, []string{used}},
		"used, back to the pool":                   {write{marked().Obj(), marked(poolRef).Obj(), "tenant"}, "", []string{used}},
		"used, back to the pool, not as its own":   {write{marked().Obj(), marked(plain(poolRef)).Obj(), "tenant"}, "", []string{used}},
		"used, the pool was there, now controls":   {write{marked(plain(poolRef)).Obj(), marked(poolRef).Obj(), "tenant"}, "", []string{used}},
		"used and the pool's, written to":          {write{marked(claimRef, plain(poolRef)).Obj(), marked(claimRef, plain(poolRef)).Label("a", "b").Obj(), "tenant"}, "", nil},
		"used and the pool's, marked":              {write{owned(claimRef, plain(poolRef)), marked(claimRef, plain(poolRef)).Obj(), self}, "", nil},
		"used by upstream's mark, back":            {write{builders.SandboxFrom(owned()).Label(agentsandbox.PodClaimLabel, "u").Obj(), member, "tenant"}, "", []string{used}},
		"used by upstream's mark on the pod, back": {write{builders.SandboxFrom(owned()).Set("u", "spec", "podTemplate", "metadata", "labels", agentsandbox.PodClaimLabel).Obj(), member, "tenant"}, "", []string{used}},
		"birth":                                   {write{nil, member, "tenant"}, freshness.Birth, nil},
		"made beside a pool":                      {write{nil, owned(plain(poolRef)), "tenant"}, "", nil},
		"cold start":                              {write{nil, builders.MakeColdStart(claim, template).Obj(), "tenant"}, freshness.ColdStart, nil},
		"made with pool and claim":                {write{nil, owned(claimRef, plain(poolRef)), "tenant"}, freshness.ColdStart, nil},
		"made for two claims":                     {write{nil, owned(plain(claimRef), otherRef), "tenant"}, freshness.ColdStart, nil},
		"made for another kind":                   {write{nil, owned(nobody), "tenant"}, freshness.ForeignController, nil},
		"made for a claim, another kind controls": {write{nil, owned(plain(claimRef), foreigner), "tenant"}, freshness.ColdStart, nil},
		"made by hand":                            {write{nil, owned(), "tenant"}, "", nil},
		"a birth's mark by a pool's controller":   {write{nil, made, agentsandbox.ControllerUser}, freshness.Birth, nil},
		"a birth's mark by anybody":               {write{nil, made, "tenant"}, freshness.Birth, []string{born}},
		"a birth's mark later":                    {write{member, made, "tenant"}, "", []string{stamp}},
		"a birth's mark gone":                     {write{made, member, "tenant"}, "", []string{stamp}},
		"what the pool asked for, gone":           {write{builders.SandboxFrom(member).Label(settings.EnforcementKey, "enforce").Obj(), member, "tenant"}, "", []string{stamp}},
		"a stamp changed":                         {write{member, builders.SandboxFrom(member).Label(settings.StampKey, "v1-b").Obj(), "tenant"}, "", []string{stamp}},
		"a stamp changed by Freshbind":            {write{member, builders.SandboxFrom(member).Label(settings.StampKey, "v1-b").Obj(), self}, "", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.operation(); got != tc.want {
				t.Errorf("Classify() = %q, want %q", got, tc.want)
			}
			if diff := cmp.Diff(wanted(tc.want), judged(r.asked(t, tc.write, enforced))); diff != "" {
				t.Errorf("webhooks (-want,+got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.refused, r.refusing(t, tc.write)); diff != "" {
				t.Errorf("policies (-want,+got):\n%s", diff)
			}
		})
	}
}

// What the API server asks about and what Freshbind takes a write for are the
// same for every way in which a Sandbox can have been owned and be owned.
func TestTheConditionsSayWhatTheCodeSays(t *testing.T) {
	r := render(t)
	refs := []metav1.OwnerReference{
		claimRef, plain(claimRef), earlier, slashless, plain(slashless), otherRef, nobody, plain(nobody),
		of("example.com/v1", "SandboxClaim", claimRef), foreigner, poolRef, plain(poolRef), of(agentsandbox.ExtensionsGroup+"/v1beta1", "SandboxWarmPool", claimRef),
	}
	var states [][]metav1.OwnerReference
	states = append(states, nil)
	for i, a := range refs {
		states = append(states, []metav1.OwnerReference{a})
		for _, b := range refs[i+1:] {
			if a.Controller == nil || b.Controller == nil {
				states = append(states, []metav1.OwnerReference{a, b}, []metav1.OwnerReference{b, a})
			}
		}
	}
	check := func(w write, old, now []metav1.OwnerReference) {
		op := w.operation()
		if diff := cmp.Diff(wanted(op), judged(r.asked(t, w, enforced))); diff != "" {
			t.Errorf("%s, then %s: Classify() = %q; webhooks (-want,+got):\n%s", titles(old), titles(now), op, diff)
		}
	}
	for _, now := range states {
		check(write{nil, owned(now...), "tenant"}, nil, now)
		for _, old := range states {
			if len(old) < 2 || len(now) < 2 {
				check(write{owned(old...), owned(now...), "tenant"}, old, now)
			}
		}
		if t.Failed() {
			return
		}
	}
}

func titles(refs []metav1.OwnerReference) []string {
	var out []string
	for _, r := range refs {
		out = append(out, fmt.Sprintf("%s %s %s controller=%t", r.APIVersion, r.Kind, r.UID, r.Controller != nil))
	}
	return out
}

// Births are stamped by one webhook, whoever makes them.
func TestEveryBirthIsStampedOnce(t *testing.T) {
	r := render(t)
	for name, tc := range map[string]struct {
		write
		want []string
	}{
		"by a pool's controller":           {write{nil, member, agentsandbox.ControllerUser}, []string{webhooks.BirthHook.Name, webhooks.StampBirthHook.Name}},
		"by somebody else":                 {write{nil, member, "tenant"}, []string{webhooks.BirthHook.Name, webhooks.StampHook.Name}},
		"a claim's by a pool's controller": {write{nil, owned(claimRef), agentsandbox.ControllerUser}, []string{webhooks.ColdStartHook.Name, webhooks.StampHook.Name}},
		"nobody's with a birth's mark":     {write{nil, builders.SandboxFrom(owned()).Annotation(settings.CreatedByKey, "x").Obj(), "tenant"}, []string{webhooks.StampHook.Name}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, r.asked(t, tc.write, enforced)); diff != "" {
				t.Errorf("webhooks (-want,+got):\n%s", diff)
			}
		})
	}
}

// Where nothing says enforce the same writes are judged, by webhooks that may fail.
func TestTheSameIsJudgedWhereNothingIsEnforced(t *testing.T) {
	r := render(t)
	for name, w := range map[string]write{
		"bind":               {member, owned(claimRef), "tenant"},
		"cold start":         {nil, builders.MakeColdStart(claim, template).Obj(), "tenant"},
		"foreign controller": {nil, owned(nobody), "tenant"},
	} {
		var want []string
		for _, hook := range judged(r.asked(t, w, enforced)) {
			want = append(want, webhooks.AuditPrefix+hook)
		}
		got := slices.DeleteFunc(r.asked(t, w, labels.Set{corev1.LabelMetadataName: "ns"}), func(hook string) bool {
			return !strings.HasPrefix(hook, webhooks.AuditPrefix)
		})
		if diff := cmp.Diff(want, got); diff != "" || len(got) == 0 {
			t.Errorf("%s: webhooks (-want,+got):\n%s", name, diff)
		}
	}
}

// A pool that says enforce closes its namespace, and no other one, also among as many
// as are named: what the API server spends on a condition is bounded.
func TestAPoolClosesItsNamespaceOnly(t *testing.T) {
	names := []string{"ns"}
	for i := range 999 {
		names = append(names, fmt.Sprintf("namespace-with-a-long-name-%030d", i))
	}
	bind := write{member, owned(claimRef), "tenant"}
	for name, tc := range map[string]struct {
		closed []string
		want   []string
	}{
		"none":           {nil, []string{webhooks.AuditPrefix + webhooks.BindHook.Name}},
		"it":             {[]string{"ns"}, []string{webhooks.PoolPrefix + webhooks.BindHook.Name}},
		"another":        {[]string{"other"}, []string{webhooks.AuditPrefix + webhooks.BindHook.Name}},
		"a thousand":     {names, []string{webhooks.PoolPrefix + webhooks.BindHook.Name}},
		"too many":       {append(names, "last"), []string{webhooks.PoolPrefix + webhooks.BindHook.Name}},
		"999 others":     {names[1:], []string{webhooks.AuditPrefix + webhooks.BindHook.Name}},
		"1,001, without": {append(names[1:], "last", "but one"), []string{webhooks.PoolPrefix + webhooks.BindHook.Name}},
	} {
		t.Run(name, func(t *testing.T) {
			r := render(t, func(c *admissionregistrationv1.ValidatingWebhookConfiguration) { webhooks.ClosePools(c, tc.closed) })
			if diff := cmp.Diff(tc.want, r.asked(t, bind, labels.Set{corev1.LabelMetadataName: "ns"})); diff != "" {
				t.Errorf("webhooks (-want,+got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{webhooks.BindHook.Name}, r.asked(t, bind, enforced)); diff != "" {
				t.Errorf("webhooks of a namespace that enforces by itself (-want,+got):\n%s", diff)
			}
		})
	}
}

// What the API server evaluates for a bind, besides calling Freshbind.
func BenchmarkABind(b *testing.B) {
	r := render(b)
	w := write{member, owned(claimRef), "tenant"}
	b.Run("webhooks", func(b *testing.B) {
		for b.Loop() {
			r.asked(b, w, enforced)
		}
	})
	b.Run("policies", func(b *testing.B) {
		for b.Loop() {
			r.refusing(b, w)
		}
	})
}
