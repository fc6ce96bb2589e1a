package agentsandbox

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freshbind/freshbind/internal/revision"
	"github.com/freshbind/freshbind/test/builders"
)

func TestReadySince(t *testing.T) {
	born, at := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 11, 1, 0, 1, 0, 0, time.UTC)
	condition := func(kind, status, since string) []any {
		return []any{map[string]any{"type": kind, "status": status, "lastTransitionTime": since}}
	}
	for name, tc := range map[string]struct {
		conditions []any
		want       time.Time
		// ready is what isReady says.
		ready bool
	}{
		"ready":                    {condition("Ready", "True", at.Format(time.RFC3339)), at, true},
		"not ready":                {condition("Ready", "False", at.Format(time.RFC3339)), time.Time{}, false},
		"something else":           {condition("Suspended", "True", at.Format(time.RFC3339)), time.Time{}, false},
		"nothing":                  {nil, time.Time{}, false},
		"ready, nobody knows when": {condition("Ready", "True", "yesterday"), born, true},
	} {
		t.Run(name, func(t *testing.T) {
			sandbox := builders.SandboxFrom(testMember).Created(born).Set(tc.conditions, "status", "conditions").Obj()
			if got := ReadySince(sandbox); !got.Equal(tc.want) {
				t.Errorf("ReadySince() = %s, want %s", got, tc.want)
			}
			if got := isReady(sandbox); got != tc.ready {
				t.Errorf("isReady() = %t, want %t", got, tc.ready)
			}
		})
	}
}

// How a claim came by its Sandbox is said by a label, or told by the name.
func TestLaunchType(t *testing.T) {
	cold := func() *builders.Sandbox {
		return builders.SandboxFrom(builders.MakeColdStart(testClaim, testTemplate).Obj()).NoLabel(launchTypeLabel)
	}
	for name, tc := range map[string]struct {
		sandbox *builders.Sandbox
		want    string
	}{
		"it says warm":       {cold().Label(launchTypeLabel, "warm"), "warm"},
		"named by its claim": {cold(), "cold"},
		"named otherwise":    {cold().Name("python-abc"), "warm"},
	} {
		if got := (Objects{}).LaunchType(tc.sandbox.Obj(), testClaim); got != tc.want {
			t.Errorf("%s: LaunchType() = %s, want %s", name, got, tc.want)
		}
	}
}

// A template that is undone has the spec that it had, and goes on to be itself.
func TestRestore(t *testing.T) {
	earlier := builders.MakeTemplate("ns", "earlier").Image("sandbox:v1").Obj()
	broken := earlier.DeepCopy()
	broken.Object["spec"] = "nonsense"
	now := builders.MakeTemplate("ns", "python").Image("sandbox:v2").Obj()
	for name, tc := range map[string]struct {
		earlier, want *unstructured.Unstructured
		failed        bool
	}{
		"as it was":                {earlier: earlier, want: builders.MakeTemplate("ns", "python").Image("sandbox:v1").Obj()},
		"as nobody understands it": {earlier: broken, want: now, failed: true},
	} {
		t.Run(name, func(t *testing.T) {
			got := now.DeepCopy()
			err := Objects{}.Restore(got, tc.earlier)
			if diff := cmp.Diff(tc.want, got); diff != "" || (err != nil) != tc.failed {
				t.Errorf("error %v (-want,+got):\n%s", err, diff)
			}
		})
	}
}

func TestWhatObjectsSay(t *testing.T) {
	given := builders.ClaimFrom(testClaim).Set("python-abc", "status", "sandbox", "name").Obj()
	member := func() *builders.Sandbox { return builders.SandboxFrom(testMember) }
	pool := func() *builders.Pool { return builders.PoolFrom(testPool) }
	pod := builders.MakePod(testMember).Obj()
	poolOwner, boxOwner := builders.ControllerRef(testPool), builders.ControllerRef(testMember)
	o := Objects{}
	for name, tc := range map[string]struct{ got, want any }{
		"a claim waits":                           {o.IsWaiting(testClaim), true},
		"a claim that has one":                    {o.IsWaiting(given), false},
		"a pool is an owner":                      {o.IsPool(&poolOwner), true},
		"a Sandbox is no pool":                    {o.IsPool(&boxOwner), false},
		"a Sandbox is an owner":                   {o.IsMember(&boxOwner), true},
		"a pool is no Sandbox":                    {o.IsMember(&poolOwner), false},
		"a Sandbox of another group":              {IsSandbox(schema.GroupKind{Group: "example.com", Kind: kindSandbox}), false},
		"another kind of its group":               {IsSandbox(schema.GroupKind{Group: CoreGroup, Kind: "Router"}), false},
		"a Pod's Sandbox":                         {o.MemberOf(pod), "python-abc"},
		"a Pod of a pool":                         {o.MemberOf(barePod(testTemplate)), ""},
		"shown":                                   {o.IsShown(testMember), true},
		"hidden":                                  {o.IsShown(member().NoLabel(TemplateRefHashLabel).Obj()), false},
		"it names its Pod":                        {o.PodOf(member().PodName("other").Obj()), "other"},
		"its Pod has its name":                    {o.PodOf(testMember), "python-abc"},
		"replicas":                                {o.Pool(pool().Replicas(3).Obj()).Replicas, 3},
		"no replicas":                             {o.Pool(pool().Unset("spec", "replicas").Obj()).Replicas, 1},
		"replicas that are none":                  {o.Pool(pool().Set("many", "spec", "replicas").Obj()).Replicas, 1},
		"it recreates":                            {o.Pool(pool().Strategy("Recreate").Obj()).Recreates, true},
		"it replenishes":                          {o.Pool(pool().Strategy("OnReplenish").Obj()).Recreates, false},
		"it names its scheduler":                  {NamesScheduler(member().PodSpec("mine", "schedulerName").Obj()), true},
		"it leaves open who schedules it":         {NamesScheduler(testMember), false},
		"selected as a member":                    {o.PooledMembers().Matches(labels.Set(testMember.GetLabels())), true},
		"a Pod is no member":                      {o.PooledMembers().Matches(labels.Set{PodSandboxLabel: "x"}), false},
		"selected as a Pod":                       {o.MemberPods().Matches(labels.Set(pod.GetLabels())), true},
		"a member is no Pod":                      {o.MemberPods().Matches(labels.Set(testMember.GetLabels())), false},
		"pooled":                                  {o.DescribeMember(testMember).Pooled, true},
		"not pooled":                              {o.DescribeMember(member().NoLabel(WarmPoolLabel).Obj()).Pooled, false},
		"described as shown":                      {o.DescribeMember(testMember).Shown, true},
		"described as hidden":                     {o.DescribeMember(member().NoLabel(TemplateRefHashLabel).Obj()).Shown, false},
		"hideable":                                {o.DescribeMember(testMember).Hideable, true},
		"not hideable":                            {o.DescribeMember(member().Unset("metadata", "annotations").Obj()).Hideable, false},
		"it is named first":                       {o.DescribeMember(testMember).NamedFirst, true},
		"it is not named first":                   {o.DescribeMember(member().NoLabel(podTemplateHashLabel).Obj()).NamedFirst, false},
		"members are Pods":                        {BarePods{}.HasBarePods(schema.GroupVersion{Group: ExtensionsGroup, Version: "v1alpha1"}), true},
		"members are Sandboxes":                   {BarePods{}.HasBarePods(schema.GroupVersion{Group: ExtensionsGroup, Version: "v1beta1"}), false},
		"it shows no node, and cannot be offered": {offered(testMember), ""},
		"it is offered again":                     {offered(member().UID("u").RV(7).Set("node-1", "status", "nodeName").Obj()), `{"metadata":{"resourceVersion":"7","uid":"u"},"status":{"nodeName":null}}`},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: %v, want %v", name, tc.got, tc.want)
		}
	}
}

func offered(sandbox *unstructured.Unstructured) string {
	patch, ok := OfferPatch(sandbox)
	if ok != (len(patch) > 0) {
		return "offered, and not"
	}
	return string(patch)
}

// The scheduler that members are sent to is no difference, and any other is one.
func TestASchedulerThatMembersAreSentTo(t *testing.T) {
	member, pod := running(testTemplate)
	for scheduler, want := range map[string]bool{"": false, "freshbind": true, "other": false} {
		sent := builders.PodFrom(pod).Set("freshbind", "spec", "schedulerName").Obj()
		own, err := podOf(sent)
		if err != nil {
			t.Fatal(err)
		}
		allowed, err := (&Platform{SchedulerName: scheduler}).podInjections(member, sent, revision.PathSet{})
		if err != nil {
			t.Fatal(err)
		}
		if d := revision.Compare(content(t, member).PodOnly(), own.Content, allowed); (len(d) == 0) != want {
			t.Errorf("members are sent to %q: the Pod is equal %t, want %t", scheduler, len(d) == 0, want)
		}
	}
}
