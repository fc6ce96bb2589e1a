package kruise

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
)

// reasonCase is a cluster after a change, and the reason of the verdict on what is written then.
type reasonCase struct {
	change func(*cluster)
	want   freshness.Reason
}

func judgeEach(t *testing.T, cases map[string]reasonCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := judgedAfter(t, tc.change)
			if diff := cmp.Diff(tc.want, v.Reason); diff != "" {
				t.Errorf("reason (-want,+got), for %q:\n%s", v.Detail, diff)
			}
		})
	}
}

// judgedAfter judges the write of a cluster in which something is changed.
func judgedAfter(t *testing.T, change func(*cluster)) freshness.Verdict {
	t.Helper()
	c := newCluster()
	change(c)
	v, err := judged(t, c)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// judged is the verdict on c.written, and why there is none.
func judged(t *testing.T, c *cluster) (freshness.Verdict, error) {
	t.Helper()
	op, old := admissionv1.Update, c.member
	if old == nil {
		op = admissionv1.Create
	}
	w, ours := (&Platform{}).Classify(op, old, c.written)
	if !ours {
		t.Fatal("the write is none of ours")
	}
	w.MayHold = c.uses
	f, err := c.platform().Snapshot(t.Context(), w)
	return freshness.Judge(f.Snapshot), err
}

func recycled(c *cluster) {
	set(c.member, "uid-before", "spec", "template", "metadata", "labels", ownerLabel)
	set(c.member, int64(1), "status", "recycledCount")
	c.member.SetGeneration(3)
	c.written = takenFor(c.member, "uid-c", "c")
}

func coldly(c *cluster) {
	c.member, c.written = nil, coldFor(c.set(), "uid-c", "c")
	delete(c.objs, pods.Resource+"/m")
}

func asUser(c *cluster) {
	c.written = takenFor(c.member, "user", "")
}

func inPlace(c *cluster, image string) {
	set(c.claim(), map[string]any{"image": image, "resources": map[string]any{"requests": map[string]any{"cpu": "2"}}}, "spec", "inplaceUpdate")
	container(c.written)["image"] = image
	container(c.written)["resources"] = map[string]any{"requests": map[string]any{"cpu": "2000m"}}
}

func sized(cpu, memory string) map[string]any {
	return map[string]any{"requests": map[string]any{"cpu": cpu, "memory": memory}}
}

// askedToRestart has the pool of a member that was created a minute ago ask for a restart.
func askedToRestart(in time.Duration) func(*cluster) {
	return func(c *cluster) {
		now := time.Now()
		c.member.SetCreationTimestamp(metav1.NewTime(now.Add(-time.Minute)))
		c.set().SetAnnotations(map[string]string{settings.RestartedAtKey: now.Add(in).Format(time.RFC3339)})
	}
}

// While a pool says that nobody understands its members, they are given to users with a warning;
// of another revision than the one in force it says nothing.
func TestBindsWhileAttributionIsSuspended(t *testing.T) {
	for name, tc := range map[string]struct {
		of   func(c *cluster) string
		want bool
	}{
		"of this revision":     {func(c *cluster) string { return hashOf(t, c.set()) }, true},
		"of one before":        {func(c *cluster) string { return hashOf(t, c.member) }, false},
		"when it says nothing": {func(*cluster) string { return "" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			v := judgedAfter(t, func(c *cluster) {
				for _, u := range []*unstructured.Unstructured{c.member, c.written} {
					set(u, "injected", "spec", "template", "spec", "hostname")
				}
				c.set().SetAnnotations(map[string]string{settings.AttributionKey: tc.of(c)})
			})
			if v.Reason != freshness.UnknownRevision || v.Allowed != tc.want {
				t.Errorf("allowed: %t for %s, want %t for UnknownRevision", v.Allowed, v.Reason, tc.want)
			}
		})
	}
}

func TestBindsByReason(t *testing.T) {
	judgeEach(t, map[string]reasonCase{
		"fresh":      {func(*cluster) {}, freshness.Fresh},
		"for a user": {asUser, freshness.Fresh},
		"stale":      {func(c *cluster) { container(c.set())["image"] = newer }, freshness.UnknownRevision},
		// Upstream's controllers leave it out of members.
		"with a field that no Pod has": {func(c *cluster) { container(c.set())["ImagePullPolicy"] = "Always" }, freshness.Fresh},
		"stale for a user":             {func(c *cluster) { asUser(c); container(c.set())["image"] = newer }, freshness.UnknownRevision},
		"stale volumes": {func(c *cluster) {
			set(c.set(), []any{map[string]any{"metadata": map[string]any{"name": "data"}}}, "spec", "volumeClaimTemplates")
		}, freshness.UnknownRevision},
		"stale runtimes":      {func(c *cluster) { set(c.set(), []any{map[string]any{"name": "r"}}, "spec", "runtimes") }, freshness.UnknownRevision},
		"stale contents":      {func(c *cluster) { set(c.set(), []any{"disk"}, "spec", "persistentContents") }, freshness.UnknownRevision},
		"stale pauses":        {func(c *cluster) { set(c.set(), "x", "spec", "pauseStrategy", "type") }, freshness.UnknownRevision},
		"before a restart":    {askedToRestart(-time.Second), freshness.StaleRevision},
		"a restart ahead":     {askedToRestart(time.Hour), freshness.Fresh},
		"other metadata only": {func(c *cluster) { set(c.set(), "v2", "spec", "template", "metadata", "labels", "app") }, freshness.Fresh},
		"stale ones are wanted": {func(c *cluster) {
			container(c.set())["image"] = newer
			c.set().SetAnnotations(map[string]string{settings.StrategyKey: "OnReplenish"})
		}, freshness.UnknownRevision},
		"deleting": {func(c *cluster) {
			now := metav1.Now()
			c.member.SetDeletionTimestamp(&now)
		}, freshness.MemberTerminating},
		"about to be deleted":   {func(c *cluster) { c.member.SetAnnotations(map[string]string{ownerAnnotation: scaleDown}) }, freshness.MemberTerminating},
		"somebody's":            {func(c *cluster) { c.member.SetAnnotations(map[string]string{ownerAnnotation: "uid-d"}) }, freshness.MemberUsed},
		"claimed already":       {func(c *cluster) { c.member.SetLabels(map[string]string{claimedLabel: yes}) }, freshness.MemberUsed},
		"used before":           {recycled, freshness.MemberUsed},
		"used before, by count": {func(c *cluster) { set(c.member, int64(1), "status", "recycledCount") }, freshness.MemberUsed},
		"used, by its own word": {func(c *cluster) {
			recycled(c)
			c.member.SetAnnotations(map[string]string{cleanupAnnotation: yes})
		}, freshness.MemberUsed},
		"used, and the pool recycles": {func(c *cluster) {
			recycled(c)
			set(c.set(), map[string]any{cleanupAnnotation: yes}, "spec", "template", "metadata", "annotations")
		}, freshness.Fresh},
		"used, recycled and changed": {func(c *cluster) {
			recycled(c)
			c.set().SetAnnotations(map[string]string{cleanupAnnotation: yes})
			container(c.pod())["image"] = newer
		}, freshness.UnknownRevision},
		"not back yet": {func(c *cluster) {
			c.set().SetAnnotations(map[string]string{cleanupAnnotation: yes})
			set(c.member, phaseRecycling, "status", "phase")
		}, freshness.MemberUsed},
		"overtaken": {func(c *cluster) {
			c.member = takenFor(c.member, "uid-d", "d")
			c.written = takenFor(c.member, "uid-c", "c")
		}, freshness.MemberClaimed},
		"no pod yet": {func(c *cluster) {
			delete(c.objs, pods.Resource+"/m")
			set(c.member, map[string]any{}, "status")
		}, freshness.PodNotYet},
		"pod gone":             {func(c *cluster) { delete(c.objs, pods.Resource+"/m") }, freshness.PodFinished},
		"pod ended":            {func(c *cluster) { set(c.pod(), "Failed", "status", "phase") }, freshness.PodFinished},
		"pod deleting":         {func(c *cluster) { now := metav1.Now(); c.pod().SetDeletionTimestamp(&now) }, freshness.PodTerminating},
		"pod of nobody":        {func(c *cluster) { c.pod().SetOwnerReferences(nil) }, freshness.PodForeign},
		"pod exchanged":        {func(c *cluster) { c.pod().SetUID("uid-next") }, freshness.PodForeign},
		"pod elsewhere":        {func(c *cluster) { set(c.pod(), []any{map[string]any{"ip": "10.0.0.2"}}, "status", "podIPs") }, freshness.PodForeign},
		"pod of another image": {func(c *cluster) { container(c.pod())["image"] = newer }, freshness.UnknownRevision},
		"pod on a node that leaves": {func(c *cluster) {
			set(c.pod(), "n", "spec", "nodeName")
			node := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"unschedulable": true}}}
			node.SetName("n")
			set(node, []any{map[string]any{"key": corev1.TaintNodeUnreachable, "effect": "NoExecute"}}, "spec", "taints")
			c.add(nodes.Resource, node)
		}, freshness.NodeLeaving},
		"pool gone":                      {func(c *cluster) { delete(c.objs, Sets.Resource+"/pool") }, freshness.PoolGone},
		"pool replaced":                  {func(c *cluster) { c.set().SetUID("uid-later") }, freshness.PoolGone},
		"pool deleting":                  {func(c *cluster) { now := metav1.Now(); c.set().SetDeletionTimestamp(&now) }, freshness.PoolGone},
		"for nobody":                     {func(c *cluster) { c.written.SetAnnotations(nil) }, freshness.ClaimGone},
		"claim gone":                     {func(c *cluster) { delete(c.objs, Claims.Resource+"/c") }, freshness.ClaimGone},
		"claim deleting":                 {func(c *cluster) { now := metav1.Now(); c.claim().SetDeletionTimestamp(&now) }, freshness.ClaimGone},
		"claim replaced":                 {func(c *cluster) { c.claim().SetUID("uid-later") }, freshness.ClaimReplaced},
		"claim elsewhere":                {func(c *cluster) { c.claim().SetNamespace("other") }, freshness.ClaimGone},
		"claim renamed by its own label": {func(c *cluster) { c.written = takenFor(c.member, "uid-c", "whatever") }, freshness.Fresh},
		"claim that hides its name": {func(c *cluster) {
			set(c.claim(), "another", "spec", "templateName")
			set(c.written, "", "metadata", "labels", claimNameLabel)
		}, freshness.PoolMismatch},
		"claim that hides its name, and is gone": {func(c *cluster) {
			delete(c.objs, Claims.Resource+"/c")
			set(c.written, "", "metadata", "labels", claimNameLabel)
		}, freshness.ClaimGone},
		"claim of another pool": {func(c *cluster) { set(c.claim(), "another", "spec", "templateName") }, freshness.PoolMismatch},
		"claim that has one": {func(c *cluster) {
			other := takenFor(memberOf(c.set(), "o"), "uid-c", "c")
			c.add(Sandboxes.Resource, other)
			c.uses = []string{"m", "o", "gone"}
		}, freshness.ClaimHoldsAnother},
		"claim that had one": {func(c *cluster) {
			c.add(Sandboxes.Resource, memberOf(c.set(), "o"))
			c.uses = []string{"o"}
		}, freshness.Fresh},
		"claim that wants two": {func(c *cluster) {
			c.add(Sandboxes.Resource, takenFor(memberOf(c.set(), "o"), "uid-c", "c"))
			c.uses = []string{"o"}
			set(c.claim(), int64(2), "spec", "replicas")
		}, freshness.Fresh},
		"claim that has all, by its status": {func(c *cluster) {
			set(c.claim(), int64(2), "spec", "replicas")
			set(c.claim(), int64(2), "status", "claimedReplicas")
		}, freshness.ClaimHoldsAnother},
		"user who has one": {func(c *cluster) {
			asUser(c)
			c.add(Sandboxes.Resource, takenFor(memberOf(c.set(), "o"), "user", ""))
			c.uses = []string{"o"}
		}, freshness.Fresh},
		"another controller too": {func(c *cluster) {
			c.written.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "j", UID: "uid-j", Controller: new(bool)}, c.member.GetOwnerReferences()[0]})
			refs := c.written.GetOwnerReferences()
			refs[1].Controller = nil
			c.written.SetOwnerReferences(refs)
		}, freshness.OwnerMismatch},

		"changed in place":         {func(c *cluster) { inPlace(c, newer) }, freshness.Fresh},
		"changed to another image": {func(c *cluster) { inPlace(c, newer); container(c.written)["image"] = "x" }, freshness.BlueprintChanged},
		"changed to another amount": {func(c *cluster) {
			inPlace(c, newer)
			container(c.written)["resources"] = map[string]any{"requests": map[string]any{"cpu": "3"}}
		}, freshness.BlueprintChanged},
		"changed to more than it names": {func(c *cluster) { inPlace(c, newer); container(c.written)["resources"] = sized("2", "1Gi") }, freshness.BlueprintChanged},
		"changed what was not asked":    {func(c *cluster) { container(c.written)["image"] = newer }, freshness.BlueprintChanged},
		"changed by a user": {func(c *cluster) {
			asUser(c)
			container(c.written)["image"] = newer
			container(c.written)["resources"] = map[string]any{"limits": map[string]any{"cpu": "1"}}
		}, freshness.Fresh},
		"memory changed by a user":      {func(c *cluster) { asUser(c); container(c.written)["resources"] = sized("1", "1Gi") }, freshness.BlueprintChanged},
		"command changed by a user":     {func(c *cluster) { asUser(c); container(c.written)["command"] = []any{"sh"} }, freshness.BlueprintChanged},
		"another template by a user":    {func(c *cluster) { asUser(c); set(c.written, "tpl", "spec", "templateRef", "name") }, freshness.BlueprintChanged},
		"by reference":                  {byRef, freshness.Fresh},
		"by reference, stale":           {func(c *cluster) { byRef(c); container(c.template())["image"] = newer }, freshness.UnknownRevision},
		"by reference, a stale command": {func(c *cluster) { byRef(c); container(c.template())["command"] = []any{"sh"} }, freshness.UnknownRevision},
		"by reference, to another":      {func(c *cluster) { byRef(c); set(c.set(), "other", "spec", "templateRef", "name") }, freshness.TemplateMismatch},
		"by reference, template gone":   {func(c *cluster) { byRef(c); delete(c.objs, Templates.Resource+"/tpl") }, freshness.TemplateGone},
		"by reference, changed":         {func(c *cluster) { byRef(c); set(c.written, "other", "spec", "templateRef", "name") }, freshness.BlueprintChanged},

		"cold":                {coldly, freshness.Fresh},
		"cold, stale":         {func(c *cluster) { coldly(c); container(c.set())["image"] = newer }, freshness.UnknownRevision},
		"cold, pool gone":     {func(c *cluster) { coldly(c); delete(c.objs, Sets.Resource+"/pool") }, freshness.PoolGone},
		"cold, another's pod": {func(c *cluster) { coldly(c); c.add(pods.Resource, podOf(memberOf(c.set(), "cold"), image)) }, freshness.PodForeign},
		"cold for a user":     {func(c *cluster) { coldly(c); c.written = coldFor(c.set(), "user", "") }, freshness.Fresh},
		"cold for a user, stale": {func(c *cluster) {
			coldly(c)
			c.written = coldFor(c.set(), "user", "")
			container(c.set())["image"] = newer
		}, freshness.UnknownRevision},
		"cold, changed as asked":     {func(c *cluster) { coldly(c); inPlace(c, newer) }, freshness.Fresh},
		"cold, changed by nobody":    {func(c *cluster) { coldly(c); container(c.written)["image"] = newer }, freshness.UnknownRevision},
		"cold, with another's label": {func(c *cluster) { coldly(c); set(c.written, "cheap", "metadata", "labels", poolLabel) }, freshness.Fresh},
		"cold, of a pool not asked":  {func(c *cluster) { coldly(c); set(c.claim(), "another", "spec", "templateName") }, freshness.PoolGone},
		"cold, claim gone":           {func(c *cluster) { coldly(c); delete(c.objs, Claims.Resource+"/c") }, freshness.ClaimGone},
		"born":                       {func(c *cluster) { c.written, c.member = c.member, nil }, freshness.Fresh},
		"born by another's reference": {func(c *cluster) {
			byRef(c)
			c.written, c.member = c.member, nil
			set(c.set(), "other", "spec", "templateRef", "name")
			other := c.objs[Templates.Resource+"/tpl"].DeepCopy()
			other.SetName("other")
			c.add(Templates.Resource, other)
		}, freshness.TemplateMismatch},
	})
}

// A read that fails leaves no verdict, whatever it was for.
func TestWhatCannotBeReadIsNoVerdict(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*cluster)
		fails  string
	}{
		"pool":         {func(*cluster) {}, "sandboxsets/pool"},
		"pod":          {func(*cluster) {}, "pods/m"},
		"claim":        {func(*cluster) {}, "sandboxclaims/c"},
		"template":     {byRef, "sandboxtemplates/tpl"},
		"node":         {func(c *cluster) { set(c.pod(), "n", "spec", "nodeName") }, "nodes/n"},
		"what it has":  {func(c *cluster) { c.uses = []string{"o"} }, "sandboxes/o"},
		"asked pool":   {func(c *cluster) { coldly(c); set(c.claim(), "another", "spec", "templateName") }, "sandboxsets/another"},
		"unreadable":   {func(c *cluster) { set(c.set(), "x", "spec", "template") }, ""},
		"no list":      {func(c *cluster) { set(c.set(), "x", "spec", "volumeClaimTemplates") }, ""},
		"no spec":      {func(c *cluster) { set(c.member, "x", "spec") }, ""},
		"no container": {func(c *cluster) { set(c.written, "x", "spec", "template", "spec", "containers") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			tc.change(c)
			c.fail[tc.fails] = true
			if v, err := judged(t, c); err == nil {
				t.Errorf("the verdict is %v, want an error", v)
			}
		})
	}
}

// A member of a pool that says nothing is not given stale, and one is where the pool
// says so.
func TestWhoServesStaleMembers(t *testing.T) {
	for strategy, want := range map[string]bool{"": false, "Recreate": false, "RollingUpdate": false, "OnReplenish": true} {
		c := newCluster()
		container(c.set())["image"] = newer
		c.set().SetAnnotations(map[string]string{settings.StrategyKey: strategy})
		v, err := judged(t, c)
		if err != nil || v.Allowed != want {
			t.Errorf("%q: allowed %t, %v; want %t", strategy, v.Allowed, err, want)
		}
	}
}

func TestAnswers(t *testing.T) {
	type answer struct {
		Code   int32
		Reason metav1.StatusReason
	}
	for op, want := range map[freshness.Operation]answer{
		freshness.Bind:      {409, metav1.StatusReasonConflict},
		freshness.ColdStart: {409, metav1.StatusReasonConflict},
		freshness.Birth:     {403, metav1.StatusReasonForbidden},
	} {
		for _, fault := range []freshness.Fault{freshness.FaultNobody, freshness.FaultClaim, freshness.FaultMember} {
			var got, undecided answer
			got.Code, got.Reason = (&Platform{}).Answer(op, fault)
			undecided.Code, undecided.Reason = (&Platform{}).Undecided(op)
			if diff := cmp.Diff([]answer{want, want}, []answer{got, undecided}); diff != "" {
				t.Errorf("%s (-want,+got):\n%s", op, diff)
			}
		}
	}
}

func TestStampsNameTheContent(t *testing.T) {
	c := newCluster()
	rendered, err := Objects{}.Render(c.set())
	if err != nil {
		t.Fatal(err)
	}
	stale := memberOf(c.set(), "stale")
	container(stale)["image"] = newer
	enforcing := newCluster()
	enforcing.set().SetAnnotations(map[string]string{settings.EnforcementKey: "enforce"})
	ref := newCluster()
	byRef(ref)
	for name, tc := range map[string]struct {
		c           *cluster
		of          *unstructured.Unstructured
		current     bool
		named       bool
		enforcement string
	}{
		"born":               {c, c.member, true, true, ""},
		"born stale":         {c, stale, false, true, ""},
		"cold":               {c, coldFor(c.set(), "uid-c", "c"), true, true, ""},
		"of a strict pool":   {enforcing, enforcing.member, true, true, "enforce"},
		"by reference":       {ref, ref.member, false, false, ""},
		"of no pool we know": {c, memberOf(made(kindSet, "none"), "x"), false, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			stamp, err := tc.c.platform().NewSandbox(t.Context(), tc.of)
			if err != nil {
				t.Fatal(err)
			}
			got := []any{stamp.Hash == rendered.Hash(), stamp.Hash != "", stamp.Enforcement, stamp.Namespace.Started()}
			if diff := cmp.Diff([]any{tc.current, tc.named, tc.enforcement, true}, got); diff != "" {
				t.Errorf("current, named, enforcement, namespace (-want,+got), stamp %q:\n%s", stamp.Hash, diff)
			}
		})
	}
}

// What a bind costs: each object once.
func TestABindReadsEachObjectOnce(t *testing.T) {
	c := newCluster()
	w, _ := (&Platform{}).Classify(admissionv1.Update, c.member, c.written)
	f, err := c.platform().Snapshot(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	// It is read beside the others, and may be when they are done.
	if _, err := f.Namespace.Labels(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(c.read)
	if diff := cmp.Diff([]string{"namespaces/ns", "pods/m", "sandboxclaims/c", "sandboxsets/pool"}, c.read); diff != "" {
		t.Errorf("reads (-want,+got):\n%s", diff)
	}
}

func TestPool(t *testing.T) {
	inline, ref := newCluster(), newCluster()
	byRef(ref)
	want := []platform.Pool{
		{Template: "pool", Replicas: 2, Withholds: true, HiddenFirst: hiddenFirst},
		{Template: "tpl", TemplateKind: kindTemplate, Replicas: 1, Withholds: true, HiddenFirst: hiddenFirst},
	}
	if diff := cmp.Diff(want, []platform.Pool{Objects{}.Pool(inline.set()), Objects{}.Pool(ref.set())}); diff != "" {
		t.Errorf("pools (-want,+got):\n%s", diff)
	}
}

// What is stored beside the mode when the pool is gone decides whether it is enforced.
func TestAMemberWhosePoolIsGoneIsEnforcedAsItWas(t *testing.T) {
	c := newCluster()
	delete(c.objs, Sets.Resource+"/pool")
	set(c.member, "enforce", "metadata", "labels", settings.EnforcementKey)
	w, _ := (&Platform{}).Classify(admissionv1.Update, c.member, c.written)
	f, err := c.platform().Snapshot(t.Context(), w)
	if err != nil || f.Enforcement != "enforce" {
		t.Errorf("enforcement %q, %v", f.Enforcement, err)
	}
}
