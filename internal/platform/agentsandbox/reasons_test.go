package agentsandbox

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
)

// What each reason depends on is taken from the objects, none of it assumed.
func TestSnapshotHasWhatEachReasonDependsOn(t *testing.T) {
	v1 := builders.MakeTemplate("ns", "python").Image("sandbox:v1").Obj()
	v2 := builders.MakeTemplate("ns", "python").Image("sandbox:v2").Obj()
	recreate := builders.MakePool("ns", "python").Strategy("Recreate").Obj()
	theClaim := builders.MakeClaim("ns", "c1").Names("python-abc").Obj()
	fresh, freshPod := running(v2)
	_, stalePod := running(v1)
	long := time.Unix(1, 0)

	claim := func() *builders.Claim { return builders.ClaimFrom(theClaim) }
	pool := func() *builders.Pool { return builders.PoolFrom(recreate) }
	member := func() *builders.Sandbox { return builders.SandboxFrom(fresh) }
	pod := func() *builders.Pod { return builders.PodFrom(freshPod) }
	// Each case changes one object; nil is one that does not exist.
	cases := map[string]struct {
		claim, pool, member, bound, pod *unstructured.Unstructured
		noPod                           bool
		want                            freshness.Reason
	}{
		"all is well":                       {want: freshness.Fresh},
		"claim being deleted":               {claim: claim().Deleting(long).Obj(), want: freshness.ClaimGone},
		"claim of that name, another one":   {claim: claim().UID("another").Obj(), want: freshness.ClaimReplaced},
		"claim names nothing":               {claim: builders.MakeClaim("ns", "c1").Obj(), want: freshness.ClaimNamesAnother},
		"claim names nothing, nor need it":  {claim: builders.MakeClaim("ns", "c1").Obj(), member: member().NoLabel(podTemplateHashLabel).Obj(), want: freshness.Fresh},
		"two claims in one write":           {bound: builders.SandboxFrom(builders.Bound(fresh, theClaim, v2).Obj()).Owners(unmarkedRef(theClaim), builders.ControllerRef(builders.MakeClaim("ns", "c2").Obj())).Obj(), want: freshness.OwnerMismatch},
		"its pool stays an owner":           {bound: builders.SandboxFrom(builders.Bound(fresh, theClaim, v2).Obj()).Owners(builders.ControllerRef(theClaim), unmarkedRef(recreate)).Obj(), want: freshness.OwnerMismatch},
		"the bind changes the pod":          {bound: builders.SandboxFrom(builders.Bound(fresh, theClaim, v2).Obj()).PodName("other").Obj(), want: freshness.BlueprintChanged},
		"claim asks for another pool":       {claim: claim().Pool("other").Obj(), want: freshness.PoolMismatch},
		"pool being deleted":                {pool: pool().Deleting(long).Obj(), want: freshness.PoolGone},
		"pool of that name, another one":    {pool: pool().UID("another").Obj(), want: freshness.PoolGone},
		"member being deleted":              {member: member().Deleting(long).Obj(), want: freshness.MemberTerminating},
		"member used before":                {member: member().Annotation(settings.BoundToKey, "u").Obj(), want: freshness.MemberUsed},
		"member of nobody":                  {member: member().Owners().Obj(), want: freshness.NotAMember},
		"member of another claim":           {member: member().Owners(builders.ControllerRef(builders.MakeClaim("ns", "c2").Obj())).Obj(), want: freshness.MemberClaimed},
		"member of an unmarked claim":       {member: member().Owners(builders.ControllerRef(recreate), unmarkedRef(builders.MakeClaim("ns", "c2").Obj())).Obj(), want: freshness.MemberClaimed},
		"member of no revision":             {member: member().Image("sandbox:odd").Obj(), want: freshness.UnknownRevision},
		"a leaf that its pool's owner has":  {member: member().PodSpec(true, "hostNetwork").Obj(), pool: pool().Annotation(settings.InjectedPathsKey, "podTemplate.spec.hostNetwork").Obj(), want: freshness.Fresh},
		"the bind edits the member":         {bound: builders.SandboxFrom(builders.Bound(fresh, theClaim, v2).Obj()).Image("sandbox:odd").Obj(), want: freshness.BlueprintChanged},
		"edited before, its pod is stale":   {member: member().Generation(2).Obj(), pod: stalePod, want: freshness.StaleRevision},
		"edited before, its pod is another": {member: member().Generation(2).Obj(), pod: pod().Generation(1).Set("other", "spec", "hostname").Obj(), want: freshness.UnknownRevision},
		"edited before, its pod is fresh":   {member: member().Generation(2).Obj(), want: freshness.Fresh},
		"no pod yet":                        {member: member().Unset("status").Obj(), noPod: true, want: freshness.PodNotYet},
		"pod being deleted":                 {pod: pod().Deleting(long).Obj(), want: freshness.PodTerminating},
		"pod failed":                        {pod: pod().Phase("Failed").Obj(), want: freshness.PodFinished},
		"pod done":                          {pod: pod().Phase("Succeeded").Obj(), want: freshness.PodFinished},
		"pod of another name":               {member: member().PodName("other").Obj(), want: freshness.PodForeign},
		"pod of nobody":                     {pod: pod().Owners().Obj(), want: freshness.PodForeign},
		"pod with another address":          {pod: pod().Set([]any{map[string]any{"ip": "10.0.0.9"}}, "status", "podIPs").Obj(), want: freshness.PodForeign},
		"pod on a node that is gone":        {pod: pod().Set("node-2", "spec", "nodeName").Obj(), want: freshness.NodeLeaving},
		"pod made again from an old one":    {pod: builders.PodFrom(stalePod).Generation(1).Obj(), want: freshness.StaleRevision},
		"pod with an image set by hand":     {pod: pod().Generation(2).Set([]any{map[string]any{"name": "python", "image": "sandbox:odd"}}, "spec", "containers").Obj(), want: freshness.UnknownRevision},
		"pod placed elsewhere by its gate":  {pod: pod().Generation(2).Set("a", "spec", "nodeSelector", "zone").Obj(), want: freshness.Fresh},
		"pod that was edited":               {pod: pod().Generation(2).Set("other", "spec", "hostname").Obj(), want: freshness.UnknownRevision},
		"pod of a sandbox that was":         {pod: pod().Created(long).Obj(), member: member().Created(long.Add(time.Hour)).Obj(), want: freshness.PodForeign},
		"pod older than one made by hand":   {pod: pod().Created(long).Obj(), member: member().Created(long.Add(time.Second)).Obj(), want: freshness.PodForeign},
		"pod as old as its pool's member":   {pod: pod().Created(long).Obj(), member: member().Created(long.Add(time.Second)).Annotation(settings.CreatedByKey, settings.CreatedByPool).Obj(), want: freshness.Fresh},
		"pod that somebody debugged":        {pod: pod().Set([]any{map[string]any{"name": "debugger", "image": "busybox"}}, "spec", "ephemeralContainers").Obj(), want: freshness.PodModified},
		"pod on no node yet":                {pod: pod().Unset("spec", "nodeName").Obj(), want: freshness.Fresh},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			member := either(tc.member, fresh)
			stored := []*unstructured.Unstructured{v2, either(tc.claim, theClaim), either(tc.pool, recreate)}
			if !tc.noPod {
				stored = append(stored, either(tc.pod, freshPod))
			}
			w, _ := (&Platform{}).Classify(admissionv1.Update, member, either(tc.bound, builders.Bound(member, theClaim, v2).Obj()))
			f, err := newPlatform(newStore(stored...), history{v2, v1}).Snapshot(t.Context(), w)
			if err != nil {
				t.Fatal(err)
			}
			if v := freshness.Judge(f.Snapshot); v.Reason != tc.want {
				t.Errorf("judged %s (%s), want %s", v.Reason, v.Detail, tc.want)
			}
		})
	}
}

// unmarkedRef is an owner reference that does not say that it is the controller's.
func unmarkedRef(owner *unstructured.Unstructured) metav1.OwnerReference {
	ref := builders.ControllerRef(owner)
	ref.Controller = nil
	return ref
}

func either(changed, usual *unstructured.Unstructured) *unstructured.Unstructured {
	if changed != nil {
		return changed
	}
	return usual
}

func TestPoolOf(t *testing.T) {
	pool := func() *builders.Pool { return builders.MakePool("ns", "p").UID("u").Template("t") }
	cases := map[string]struct {
		pool *unstructured.Unstructured
		want *freshness.Pool
	}{
		"nothing said":          {pool().Obj(), &freshness.Pool{Replenishes: true, Strategy: freshness.OnReplenish}},
		"its own strategy":      {pool().Strategy("Recreate").Obj(), &freshness.Pool{Strategy: freshness.Recreate}},
		"by annotation":         {pool().Strategy("OnReplenish").Annotation(settings.StrategyKey, "RollingUpdate").Obj(), &freshness.Pool{Replenishes: true, Strategy: freshness.RollingUpdate}},
		"admits any":            {pool().Annotation(settings.AdmitKey, "any").Obj(), &freshness.Pool{Replenishes: true, Strategy: freshness.OnReplenish, AdmitAny: true}},
		"admits fresh":          {pool().Annotation(settings.AdmitKey, "fresh").Obj(), &freshness.Pool{Replenishes: true, Strategy: freshness.OnReplenish}},
		"admits what is not":    {pool().Annotation(settings.AdmitKey, "Any").Obj(), &freshness.Pool{Replenishes: true, Strategy: freshness.OnReplenish}},
		"one that is not known": {pool().Strategy("Someday").Obj(), &freshness.Pool{Strategy: freshness.PlatformOwned}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.want.Name, tc.want.UID, tc.want.Template = "p", "u", "t"
			got := (&Platform{Defaults: settings.Defaults{Strategy: freshness.OnReplenish}}).poolOf(tc.pool, "")
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("poolOf() (-want,+got):\n%s", diff)
			}
		})
	}
}
