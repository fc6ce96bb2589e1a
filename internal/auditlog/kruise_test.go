package auditlog

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/freshbind/freshbind/internal/checker"
)

const (
	kruiseGroup = "agents.kruise.io"
	kruisePool  = "system:serviceaccount:sandbox-system:sandbox-controller-manager"
	kruiseUser  = "user-1"
)

// boxes is a SandboxSet and a ready member with its Pod.
type boxes struct {
	*logBuilder
	set, box, pod, claim *unstructured.Unstructured
}

func newBoxes(t testing.TB) *boxes {
	x := newLogBuilder(t)
	x.user = kruisePool
	s := &boxes{logBuilder: x}
	s.set = s.add(copied{boxObject("SandboxSet", "pool", boxSpec("box:1"))})
	s.birth(boxSpec("box:1"))
	return s
}

func boxObject(kind, name string, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": kruiseGroup + "/v1alpha1", "kind": kind, "spec": spec}}
	u.SetNamespace(ns)
	u.SetName(name)
	u.SetUID(types.UID("uid-" + kind + "-" + name))
	u.SetGeneration(1)
	return u
}

func boxSpec(image string) map[string]any {
	return map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": image}}}}}
}

func controlledBy(of *unstructured.Unstructured) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: of.GetAPIVersion(), Kind: of.GetKind(), Name: of.GetName(), UID: of.GetUID(), Controller: ptr.To(true)}}
}

// birth makes a ready member, whose Pod is of image box:1 as it is of what it says.
func (s *boxes) birth(spec map[string]any) {
	s.box = boxObject("Sandbox", "pool-1", spec)
	s.box.SetLabels(map[string]string{kruiseGroup + "/sandbox-pool": s.set.GetName(), kruiseGroup + "/sandbox-template": s.set.GetName(), "tenant": "no concern"})
	s.box.SetOwnerReferences(controlledBy(s.set))
	s.box = s.add(copied{s.box})
	pod := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "spec": boxSpec("box:1")["template"].(map[string]any)["spec"],
		"status": map[string]any{"phase": "Running", "podIPs": []any{map[string]any{"ip": "10.0.0.1"}}}}}
	pod.SetNamespace(ns)
	pod.SetName("pool-1")
	pod.SetUID("uid-pod-1")
	pod.SetOwnerReferences(controlledBy(s.box))
	s.pod = s.add(copied{pod})
	s.ready("10.0.0.1")
}

// ready is a status that shows the Pod at an address.
func (s *boxes) ready(ip string) {
	s.change(&s.box, func(u *unstructured.Unstructured) {
		u.Object["status"] = map[string]any{"phase": "Running", "podInfo": map[string]any{"podIP": ip, "podUID": "uid-pod-1"},
			"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}
	})
}

func (s *boxes) change(of **unstructured.Unstructured, by func(*unstructured.Unstructured)) {
	next := (*of).DeepCopy()
	by(next)
	*of = s.mod(copied{next})
}

func (s *boxes) edit(image string) {
	s.change(&s.set, func(u *unstructured.Unstructured) {
		u.Object["spec"] = boxSpec(image)
		u.SetGeneration(u.GetGeneration() + 1)
	})
}

func (s *boxes) ask(name string, replicas int64) {
	s.claim = s.add(copied{boxObject("SandboxClaim", name, map[string]any{"templateName": s.set.GetName(), "replicas": replicas})})
}

// take is the PUT that empties the owner, for the claim or, without one, for a user of E2B.
func (s *boxes) take() {
	s.change(&s.box, func(u *unstructured.Unstructured) {
		u.SetOwnerReferences(nil)
		labels := maps.Clone(u.GetLabels())
		owner := kruiseUser
		if s.claim != nil {
			owner, labels[kruiseGroup+"/claim-name"] = string(s.claim.GetUID()), s.claim.GetName()
		}
		u.SetLabels(labels)
		u.SetAnnotations(map[string]string{kruiseGroup + "/owner": owner, kruiseGroup + "/claim-timestamp": s.now.Add(time.Second).Format(time.RFC3339)})
		u.SetGeneration(u.GetGeneration() + 1)
	})
}

func TestKruiseVerdicts(t *testing.T) {
	for name, tc := range map[string]struct {
		tell func(s *boxes)
		want []string
	}{
		"a user's, fresh":        {func(s *boxes) { s.take() }, []string{kruiseUser + ": Fresh"}},
		"a claim's, fresh":       {func(s *boxes) { s.ask("c", 1); s.take() }, []string{"c: Fresh"}},
		"a user's, written late": {func(s *boxes) { s.edit("box:2"); s.ready("10.0.0.1"); s.take() }, []string{kruiseUser + ": Stale"}},
		"a user's, taken long after by the server's clock": {func(s *boxes) {
			s.edit("box:2")
			s.now = s.now.Add(3 * time.Second)
			s.take()
		}, []string{kruiseUser + ": Stale"}},
		"a user's, who may have asked before": {func(s *boxes) { s.edit("box:2"); s.take() }, []string{kruiseUser + ": Raced"}},
		"a claim's, stale":                    {func(s *boxes) { s.edit("box:2"); s.ask("c", 1); s.take() }, []string{"c: Stale"}},
		"an edit that was undone":             {func(s *boxes) { s.edit("box:2"); s.edit("box:1"); s.ask("c", 1); s.take() }, []string{"c: Fresh"}},
		"another address than its Pod's":      {func(s *boxes) { s.ready("10.0.0.9"); s.take() }, []string{kruiseUser + ": DeadMember"}},
		"locked for scale-down": {func(s *boxes) {
			s.change(&s.box, func(u *unstructured.Unstructured) {
				u.SetAnnotations(map[string]string{kruiseGroup + "/owner": "__manager_scale_down"})
			})
			s.take()
		}, []string{kruiseUser + ": DeadMember"}},
		"a stale cold start": {func(s *boxes) {
			s.edit("box:2")
			s.ask("c", 1)
			cold := boxObject("Sandbox", "pool-cold", boxSpec("box:1"))
			cold.SetLabels(map[string]string{kruiseGroup + "/sandbox-pool": "pool", kruiseGroup + "/claim-name": "c"})
			cold.SetAnnotations(map[string]string{kruiseGroup + "/owner": string(s.claim.GetUID())})
			s.add(copied{cold})
		}, []string{"c: Stale"}},
		"a version of the SandboxSet that the log skips": {func(s *boxes) {
			s.ask("c", 1)
			s.take()
			s.set.SetGeneration(2)
			s.edit("box:3")
		}, []string{"c: Unjudged"}},
		// Its claim's controller has the same account, and gives up what never came to run.
		"deleted by the account that made it": {func(s *boxes) { s.ask("c", 1); s.take(); s.del(s.box) }, []string{"c: Fresh"}},
		"its Pod deleted by that account": {func(s *boxes) {
			s.ask("c", 1)
			s.take()
			gone := s.pod.DeepCopy()
			gone.SetDeletionTimestamp(ptr.To(metav1.NewTime(s.now)))
			gone.SetDeletionGracePeriodSeconds(ptr.To[int64](30))
			s.write("delete", 200, copied{gone})
		}, []string{"c: Fresh"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newBoxes(t)
			tc.tell(s)
			got, missing := judge(t, s.text())
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("verdicts (-want,+got):\n%s\n%v", diff, missing.Notes)
			}
			if !missing.Judgeable {
				t.Errorf("not judgeable: %q", missing.Notes)
			}
		})
	}
}

// A reference says nothing of what is in the template: the Pod does.
func TestKruiseReferences(t *testing.T) {
	refers := map[string]any{"templateRef": map[string]any{"name": "pool"}}
	x := newLogBuilder(t)
	x.user = kruisePool
	s := &boxes{logBuilder: x}
	template := s.add(copied{boxObject("SandboxTemplate", "pool", boxSpec("box:1"))})
	s.set = s.add(copied{boxObject("SandboxSet", "pool", refers)})
	s.birth(refers)
	s.change(&template, func(u *unstructured.Unstructured) { u.Object["spec"] = boxSpec("box:2"); u.SetGeneration(2) })
	s.ask("c", 1)
	s.take()
	got, missing := judge(t, s.text())
	if diff := cmp.Diff([]string{"c: Stale"}, got); diff != "" {
		t.Errorf("verdicts (-want,+got):\n%s\n%v", diff, missing.Notes)
	}
	if diff := cmp.Diff([]string{noNamespaces}, missing.Notes); diff != "" {
		t.Errorf("notes (-want,+got):\n%s", diff)
	}
	for i, line := range s.lines {
		b, err := json.Marshal(googleEntry(i, line))
		if err != nil {
			t.Fatal(err)
		}
		s.lines[i] = string(b)
	}
	if got, _ := judge(t, s.text()); !cmp.Equal(got, []string{"c: Stale"}) {
		t.Errorf("as GKE exports it: %q", got)
	}
}

// When a claim has all that it wants, it is ready, and not before.
func TestKruiseClaimsAreReadyWhenTheyAreFull(t *testing.T) {
	for name, tc := range map[string]struct {
		phase string
		has   int64
		want  int
	}{
		"full":         {"Completed", 2, 1},
		"out of time":  {"Completed", 1, 0},
		"on its way":   {"Claiming", 2, 0},
		"with nothing": {"Completed", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newBoxes(t)
			s.ask("c", 2)
			s.take()
			s.change(&s.claim, func(u *unstructured.Unstructured) {
				u.Object["status"] = map[string]any{"phase": tc.phase, "claimedReplicas": tc.has}
			})
			h, _, err := read(t, s.text()).History("", checker.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if got := h.Judge().Namespace(ns).Ready; got != tc.want {
				t.Errorf("%d claims are ready, want %d", got, tc.want)
			}
		})
	}
}

func TestWhatIsMissingOfKruise(t *testing.T) {
	const noTemplates = "No write to sandboxtemplates is in the log. Binds of SandboxSets that refer to one are not judged."
	for name, tc := range map[string]struct {
		keep      func(line string) bool
		claims    bool
		want      []string
		notes     []string
		judgeable bool
	}{
		"a user of E2B, and no claim": {judgeable: true, want: []string{kruiseUser + ": Fresh"}, keep: func(string) bool { return true },
			notes: []string{noTemplates, "No write to sandboxclaims is in the log. Binds for SandboxClaims are not judged; those for users of E2B, who have none, are.", noNamespaces}},
		"claims that the policy leaves out": {claims: true, judgeable: true, want: []string{"c: Unjudged"}, keep: not(about("sandboxclaims")),
			notes: []string{noTemplates, "No write to sandboxclaims is in the log. Binds for SandboxClaims are not judged; those for users of E2B, who have none, are.", noNamespaces}},
		"no SandboxSet": {claims: true, judgeable: true, want: []string{"c: Unjudged"}, keep: not(about("sandboxsets")),
			notes: []string{noTemplates, "No write to sandboxsets is in the log. Binds are not judged where the SandboxSet's content is not known.", noNamespaces}},
		"no Sandbox": {claims: true, keep: not(about("sandboxes")),
			notes: []string{noTemplates, "No write to sandboxes is in the log. Binds among them are not seen, so the absence of findings proves nothing.", noNamespaces}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newBoxes(t)
			if tc.claims {
				s.ask("c", 1)
			}
			s.take()
			judgedAs(t, keep(s.lines, tc.keep), tc.want, tc.notes, tc.judgeable)
		})
	}
}

// Claims at level Metadata are missing, whoever else there is.
func TestKruiseClaimsWithoutWhatWasStored(t *testing.T) {
	s := newBoxes(t)
	s.level = "Metadata"
	s.ask("c", 1)
	s.level = ""
	s.take()
	_, missing := judge(t, s.text())
	if missing.Judgeable || !strings.Contains(strings.Join(missing.Notes, " "), "1 write of sandboxclaims is without what was stored") {
		t.Errorf("judgeable %t, notes %q", missing.Judgeable, missing.Notes)
	}
}

// Where two platforms have the same names, each is judged by its own objects.
func TestPlatformsAreJudgedApart(t *testing.T) {
	c := newCast(t)
	s := &boxes{logBuilder: c.logBuilder}
	s.set = s.add(copied{boxObject("SandboxSet", "python", boxSpec("box:1"))})
	s.birth(boxSpec("box:1"))
	s.edit("box:2")
	s.ask("c1", 1)
	s.take()
	c.serve("c1")
	for platform, want := range map[string][]string{
		checker.AgentSandbox: {"c1: Fresh"}, "": {"c1: Fresh"}, checker.Kruise: {"c1: Stale"},
	} {
		l := read(t, c.text())
		if diff := cmp.Diff(checker.Platforms(), l.Platforms()); diff != "" {
			t.Errorf("platforms (-want,+got):\n%s", diff)
		}
		h, missing, err := l.History(platform, checker.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, b := range h.Judge().Binds {
			got = append(got, b.Claim.Name+": "+string(b.Class))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: verdicts (-want,+got):\n%s\n%v", platform, diff, missing.Notes)
		}
	}
	if got := read(t, newBoxes(t).text()).Platforms(); !cmp.Equal(got, []string{checker.Kruise}) {
		t.Errorf("platforms %q, want OpenKruise Agents alone", got)
	}
}
