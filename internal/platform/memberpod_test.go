package platform

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/settings"
)

func nobodys(u *unstructured.Unstructured) { u.SetOwnerReferences(nil) }

func edited(u *unstructured.Unstructured) { u.SetGeneration(2) }

func TestReducedPods(t *testing.T) {
	type says struct {
		Box, Node, Scheduler, Stamp string
		Deleting, Gated, Exchanged  bool
		// Of: it is the Pod of m. Nobodys: of nobody.
		Of, Nobodys bool
	}
	plain := says{Box: "m", Of: true}
	with := func(change func(*says)) says {
		out := plain
		change(&out)
		return out
	}
	for name, tc := range map[string]struct {
		change changed
		want   says
	}{
		"plain":             {func(*unstructured.Unstructured) {}, plain},
		"on a node":         {set("node-1", "spec", "nodeName"), with(func(s *says) { s.Node = "node-1" })},
		"of a scheduler's":  {set("freshbind", "spec", "schedulerName"), with(func(s *says) { s.Scheduler = "freshbind" })},
		"stamped":           {set("v1-a", "metadata", "labels", settings.StampKey), with(func(s *says) { s.Stamp = "v1-a" })},
		"deleting":          {deleting, with(func(s *says) { s.Deleting = true })},
		"gated":             {set([]any{map[string]any{"name": "example.com/wait"}}, "spec", "schedulingGates"), with(func(s *says) { s.Gated = true })},
		"of another name":   {annotated(boxKey, "other"), with(func(s *says) { s.Box = "other" })},
		"of no Box":         {set(map[string]any{}, "metadata", "annotations"), with(func(s *says) { s.Box = "" })},
		"written to":        {edited, with(func(s *says) { s.Exchanged = true })},
		"nobody's":          {nobodys, with(func(s *says) { s.Of, s.Nobodys = false, true })},
		"it does not parse": {set("nonsense", "spec", "containers"), plain},
	} {
		t.Run(name, func(t *testing.T) {
			p := NewReducer(newBoxes()).Pod(makePod("m", v2, tc.change), nil)
			got := says{
				Box: p.Sandbox(), Node: p.Node(), Scheduler: p.Scheduler(), Stamp: p.Stamp(), Deleting: p.Deleting(), Gated: p.Gated(),
				Exchanged: p.Exchanged(freshness.Unknown), Of: p.of("uid-m"), Nobodys: p.of(""),
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
			if p.Exchanged(freshness.Current) {
				t.Error("what is current was exchanged")
			}
		})
	}
}

// A Pod that takes another's name is not taken for it.
func TestAPodOfTheSameName(t *testing.T) {
	r := NewReducer(newBoxes())
	before := r.Pod(makePod("m", v2), nil)
	if p := r.Pod(makePod("m", v2, set("8", "metadata", "resourceVersion")), before); p.UID != before.UID || p.Name != before.Name || p.ResourceVersion != "8" {
		t.Errorf("a later version is %s %s %s", p.Name, p.UID, p.ResourceVersion)
	}
	if p := r.Pod(makePod("m", v2, set("uid-x", "metadata", "uid")), before); p.UID != "uid-x" {
		t.Errorf("another one has the UID %s", p.UID)
	}
}

func TestPodsThatSayTheSame(t *testing.T) {
	toleration := func(more map[string]any) changed {
		t := map[string]any{"key": "dedicated", "operator": "Exists", "effect": "NoExecute"}
		for k, v := range more {
			t[k] = v
		}
		return set([]any{t}, "spec", "tolerations")
	}
	long := func(end string) string { return "sandbox:" + strings.Repeat("x", maxImages) + end }
	for name, tc := range map[string]struct {
		a, b *unstructured.Unstructured
		want bool
	}{
		"another version":                {makePod("m", v2), makePod("m", v2, set("8", "metadata", "resourceVersion")), true},
		"another one of that name":       {makePod("m", v2), makePod("m", v2, set("uid-x", "metadata", "uid")), false},
		"another image":                  {makePod("m", v2), makePod("m", v3), false},
		"another image, too long":        {makePod("m", long("a")), makePod("m", long("b")), false},
		"another node":                   {makePod("m", v2), makePod("m", v2, set("node-2", "spec", "nodeName")), false},
		"deleting":                       {makePod("m", v2), makePod("m", v2, deleting), false},
		"of another Box":                 {makePod("m", v2), makePod("m", v2, annotated(boxKey, "x")), false},
		"of none":                        {makePod("m", v2), makePod("m", v2, set(map[string]any{}, "metadata", "annotations")), false},
		"written to":                     {makePod("m", v2), makePod("m", v2, edited), false},
		"debugged":                       {makePod("m", v2), makePod("m", v2, debugged), false},
		"it tolerates what evicts":       {makePod("m", v2), makePod("m", v2, toleration(nil)), false},
		"it tolerates that for a while":  {makePod("m", v2), makePod("m", v2, toleration(map[string]any{"tolerationSeconds": int64(300)})), true},
		"it tolerates what lets it stay": {makePod("m", v2), makePod("m", v2, toleration(map[string]any{"effect": "NoSchedule"})), true},
	} {
		t.Run(name, func(t *testing.T) {
			r := NewReducer(newBoxes())
			a, b := r.Pod(tc.a, nil), r.Pod(tc.b, nil)
			if got := a.SameButVersion(b); got != tc.want {
				t.Errorf("SameButVersion() = %t, want %t", got, tc.want)
			}
		})
	}
}

// What is Current by its images is looked at in full where anything speaks against that.
func TestDoubts(t *testing.T) {
	const revision = "v1-a"
	stamped := func(with string) changed { return set(with, "metadata", "labels", settings.StampKey) }
	twice := makeBox("m", v2, edited)
	for name, tc := range map[string]struct {
		member, pod *unstructured.Unstructured
		want        bool
	}{
		"nothing":                         {makeBox("m", v2), makePod("m", v2), false},
		"the stamp in force":              {makeBox("m", v2), makePod("m", v2, stamped(revision)), false},
		"another stamp":                   {makeBox("m", v2), makePod("m", v2, stamped("v1-b")), true},
		"the Pod was written to":          {makeBox("m", v2), makePod("m", v2, edited), true},
		"the member was written to":       {twice, makePod("m", v2), true},
		"the member of another":           {twice, makePod("m", v2, nobodys), false},
		"of another, and that written to": {makeBox("m", v2), makePod("m", v2, edited, nobodys), false},
	} {
		t.Run(name, func(t *testing.T) {
			r := NewReducer(newBoxes())
			got := r.Pod(tc.pod, nil).Doubt(r.Member(tc.member, nil), revision)
			if (got != "") != tc.want {
				t.Errorf("Doubt() = %q, want one: %t", got, tc.want)
			}
		})
	}
}

func TestMustLeave(t *testing.T) {
	evicting := freshness.Node{Evicting: []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoExecute}}}
	tolerant := set([]any{map[string]any{"key": "dedicated", "operator": "Exists", "effect": "NoExecute"}}, "spec", "tolerations")
	for name, tc := range map[string]struct {
		pod  *unstructured.Unstructured
		node freshness.Node
		want bool
	}{
		"it can stay":       {makePod("m", v2), freshness.Node{}, false},
		"it is evicted":     {makePod("m", v2), evicting, true},
		"it tolerates that": {makePod("m", v2, tolerant), evicting, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := NewReducer(newBoxes()).Pod(tc.pod, nil).MustLeave(tc.node); got != tc.want {
				t.Errorf("MustLeave() = %t, want %t", got, tc.want)
			}
		})
	}
}

func TestReadPod(t *testing.T) {
	type says struct {
		Controller                    string
		Ephemeral, Deleting, Finished bool
		IPs                           []string
	}
	plain := says{Controller: "uid-m"}
	with := func(change func(*says)) says {
		out := plain
		change(&out)
		return out
	}
	plainRef := func(u *unstructured.Unstructured) {
		refs := u.GetOwnerReferences()
		refs[0].Controller = nil
		u.SetOwnerReferences(refs)
	}
	for name, tc := range map[string]struct {
		change changed
		want   says
		err    string
	}{
		"plain":                 {change: func(*unstructured.Unstructured) {}, want: plain},
		"nobody's":              {change: nobodys, want: with(func(s *says) { s.Controller = "" })},
		"of a mere owner":       {change: plainRef, want: with(func(s *says) { s.Controller = "" })},
		"debugged":              {change: debugged, want: with(func(s *says) { s.Ephemeral = true })},
		"deleting":              {change: deleting, want: with(func(s *says) { s.Deleting = true })},
		"failed":                {change: set("Failed", "status", "phase"), want: with(func(s *says) { s.Finished = true })},
		"done":                  {change: set("Succeeded", "status", "phase"), want: with(func(s *says) { s.Finished = true })},
		"running":               {change: set("Running", "status", "phase"), want: plain},
		"addresses":             {change: set([]any{map[string]any{"ip": "10.0.0.1"}, "none"}, "status", "podIPs"), want: with(func(s *says) { s.IPs = []string{"10.0.0.1"} })},
		"no spec":               {change: nonsense, err: "reading spec of pod m"},
		"no containers to read": {change: set("nonsense", "spec", "containers"), err: "reading blueprint of pod m"},
	} {
		t.Run(name, func(t *testing.T) {
			pod, err := ReadPod(makePod("m", v2, tc.change))
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("ReadPod(): error %v, want one that says %s", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := says{pod.ControllerUID, pod.Ephemeral, pod.Deleting, pod.Finished, pod.IPs}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("ReadPod() (-want,+got):\n%s", diff)
			}
		})
	}
}
