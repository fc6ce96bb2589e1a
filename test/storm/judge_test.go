package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/upstream"
)

const (
	testNS    = "storm-recreate"
	collector = "system:serviceaccount:kube-system:generic-garbage-collector"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// ms is a moment, in milliseconds after noon.
func ms(n int) time.Time { return noon.Add(time.Duration(n) * time.Millisecond) }

// logged is one request in the words of an audit log: all its stages.
func logged(t *testing.T, r request, annotations map[string]string) string {
	t.Helper()
	var lines strings.Builder
	for _, stage := range []string{"RequestReceived", "ResponseComplete"} {
		e := auditEvent{AuditID: r.id, Stage: stage, Verb: r.verb, RequestReceivedTimestamp: r.received, StageTimestamp: r.received}
		e.User.Username = r.user
		e.ObjectRef.Resource, e.ObjectRef.Namespace, e.ObjectRef.Name = r.resource, r.namespace, r.name
		if stage == "ResponseComplete" {
			e.StageTimestamp, e.Annotations = r.answered, annotations
			e.ResponseStatus.Code, e.ResponseStatus.Message = r.code, r.message
		}
		line, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		lines.Write(append(line, '\n'))
	}
	return lines.String()
}

func write(verb, resource, name, user string, received, answered int) request {
	return request{
		verb: verb, resource: resource, namespace: testNS, name: name, user: user, code: 200,
		received: ms(received), answered: ms(answered),
	}
}

func TestReadTrail(t *testing.T) {
	bind := write("patch", "sandboxes", "python-1", upstream.User, 10, 15)
	bind.id = "a"
	label := write("patch", "sandboxes", "python-1", upstream.User, 20, 25)
	elsewhere := bind
	elsewhere.namespace = "storm-of-before"
	status := strings.ReplaceAll(logged(t, label, nil), `"subresource":""`, `"subresource":"status"`)
	text := logged(t, bind, map[string]string{"bind.freshbind.dev/verdict": "allow"}) +
		logged(t, label, nil) + status +
		logged(t, write("get", "sandboxes", "python-1", upstream.User, 30, 31), nil) +
		logged(t, write("patch", "events", "e", upstream.User, 30, 31), nil) +
		logged(t, elsewhere, nil) +
		`{"stage":"ResponseComplete","verb":"del`
	got, err := readTrail(strings.NewReader(text), []string{testNS})
	if err != nil {
		t.Fatal(err)
	}
	bind.judged = true
	want := &trail{requests: []request{bind, label}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(trail{}, request{})); diff != "" {
		t.Errorf("trail (-want,+got):\n%s", diff)
	}
	if _, err := readTrail(strings.NewReader(`{"stage":"ResponseComplete",`+"\n"), []string{testNS}); err == nil {
		t.Error("a broken line passes")
	}
}

func TestRefused(t *testing.T) {
	denied := func(hook string, code int) request {
		return request{code: code, message: fmt.Sprintf("admission webhook %q denied the request: why", hook)}
	}
	tr := &trail{requests: []request{
		denied("bind.freshbind.dev", 404), denied("bind.freshbind.dev", 409), denied("coldstart.freshbind.dev", 409),
		denied("birth.freshbind.dev", 403),
		denied("bind.freshbind.dev", 500), denied("protect.freshbind.dev", 404), denied("bind.example.com", 403),
		{code: 409, message: "the object has been modified"}, {code: 200},
		{code: 422, message: "ValidatingAdmissionPolicy 'freshbind-used' with binding 'freshbind-used' denied request: why"},
		{code: 422, message: "ValidatingAdmissionPolicy 'another' with binding 'another' denied request: why"},
		denied("foreigncontroller.freshbind.dev", 403),
	}}
	if got := tr.refused(func(request) bool { return true }); got != 6 {
		t.Errorf("%d refused, want 6", got)
	}
	if got := tr.refused(func(r request) bool { return r.code == 409 }); got != 2 {
		t.Errorf("%d refused with 409, want 2", got)
	}
}

// evidenceOf has one update, answered at 100 ms and stored as rv 50, and one
// deletion of a Pod, answered at 210 ms.
func evidenceOf(t *testing.T, requests ...request) evidence {
	t.Helper()
	update := write("update", "sandboxtemplates", "python", stormUser, 90, 100)
	update.id = "u"
	gone := write("delete", "pods", "python-1", stormUser, 200, 210)
	e := evidence{
		report: &checker.Report{}, ends: newEnds(testNS), ids: &ids{ids: map[checker.RV]string{"50": "u"}},
		trail: &trail{requests: append([]request{update, gone}, requests...)},
	}
	pod := builders.MakePod(builders.MakeMember(
		builders.MakePool(testNS, "python").Obj(), builders.MakeTemplate(testNS, "python").Obj()).Name("python-1").UID("s1").Obj())
	see(t, e.ends, checker.Added, pod.RV(20).Obj(), 1)
	see(t, e.ends, checker.Modified, pod.RV(60).Deleting(ms(200)).Obj(), 205)
	return e
}

func see(t *testing.T, s *ends, what checker.EventType, o *unstructured.Unstructured, at int) {
	t.Helper()
	if err := s.Write(checker.Event{Type: what, Object: o, SeenAt: ms(at)}); err != nil {
		t.Fatal(err)
	}
}

func binding(received, answered int) request {
	r := write("patch", "sandboxes", "python-1", upstream.User, received, answered)
	r.judged = true
	return r
}

func TestJudgeBinds(t *testing.T) {
	failed := binding(95, 99)
	failed.code = 404
	stale := checker.Finding{Class: checker.Stale, Message: "runs a, in force was b"}
	raced := checker.Finding{Class: checker.Raced, Message: "runs a, in force was b"}
	deadPod := checker.Finding{Class: checker.DeadMember, Message: "its Pod was being deleted"}
	racedPod := checker.Finding{Class: checker.Raced, Message: "its Pod was being deleted while the bind was under way"}
	cases := map[string]struct {
		requests []request
		since    checker.RV
		findings []checker.Finding
		want     tally
	}{
		"received before the update was answered":         {[]request{binding(99, 120)}, "50", []checker.Finding{stale}, tally{raced: 1}},
		"received after the update was answered":          {[]request{binding(101, 120)}, "50", []checker.Finding{stale}, tally{stale: 1}},
		"raced by the order of writes, not by the log":    {[]request{binding(101, 120)}, "50", []checker.Finding{raced}, tally{stale: 1}},
		"an earlier try does not count":                   {[]request{failed, binding(101, 120)}, "50", []checker.Finding{stale}, tally{stale: 1}},
		"neither does a later bind of the same name":      {[]request{binding(99, 120), binding(500, 510)}, "50", []checker.Finding{stale}, tally{raced: 1}},
		"the bind is not in the log":                      {nil, "50", []checker.Finding{stale}, tally{stale: 1}},
		"the update is not in the log":                    {[]request{binding(99, 120)}, "51", []checker.Finding{stale}, tally{stale: 1}},
		"received before the Pod's deletion was answered": {[]request{binding(209, 220)}, "", []checker.Finding{deadPod}, tally{raced: 1}},
		"received after the Pod's deletion was answered":  {[]request{binding(211, 220)}, "", []checker.Finding{deadPod}, tally{dead: 1}},
		"a Pod's race that was none":                      {[]request{binding(211, 220)}, "", []checker.Finding{racedPod}, tally{dead: 1}},
		"the member's own end has no race":                {[]request{binding(1, 2)}, "", []checker.Finding{{Class: checker.DeadMember, Message: "the sandbox was being deleted"}}, tally{dead: 1}},
		"two things at once":                              {[]request{binding(101, 220)}, "50", []checker.Finding{racedPod, stale}, tally{raced: 1, stale: 1}},
		"others are counted as they are": {nil, "", []checker.Finding{{Class: checker.Duplicate}, {Class: checker.UsedMember}, {Class: checker.ForeignMember},
			{Class: checker.OwnerMismatch}, {Class: checker.WrongClaim}, {Class: checker.NotYet},
			{Class: checker.Unjudged}, {Class: checker.Tolerated}}, tally{duplicate: 1, used: 1, foreign: 1, misowned: 1, misled: 1, unjudged: 1, tolerated: 1}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := evidenceOf(t, tc.requests...)
			e.report.Findings = []checker.Bind{{
				Namespace: testNS, Sandbox: checker.Ref{Name: "python-1", UID: "s1"}, Warm: true, RV: "70", SeenAt: ms(300),
				StaleSince: tc.since, Findings: tc.findings,
			}}
			got := e.judge()
			faults := got.stale + got.dead + got.duplicate + got.used + got.foreign + got.misowned + got.misled + got.unjudged
			if len(got.notes) != faults {
				t.Errorf("%d notes for %d faults: %q", len(got.notes), faults, got.notes)
			}
			got.notes, got.attacks = nil, nil
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(tally{})); diff != "" {
				t.Errorf("tally (-want,+got):\n%s", diff)
			}
		})
	}
}

// A pool that rolls may serve stale members until it says otherwise. A bind that
// was received before is what the pool wanted then.
func TestJudgePoolsThatServedStaleMembers(t *testing.T) {
	const pool = "python"
	tightened := write("patch", "sandboxwarmpools", pool, "freshbind", 140, 150)
	unrelated := write("patch", "sandboxwarmpools", "another", "freshbind", 240, 250)
	// The update was answered at 100.
	cases := map[string]struct {
		bind request
		says []string
		want tally
	}{
		"received before the pool's word was stored": {binding(149, 200), []string{"fresh", "any", "fresh"}, tally{raced: 1}},
		"received after the pool's word was stored":  {binding(151, 200), []string{"fresh", "any", "fresh"}, tally{stale: 1}},
		"it never served them":                       {binding(149, 200), []string{"", "fresh"}, tally{stale: 1}},
		"nothing was said":                           {binding(149, 200), nil, tally{stale: 1}},
		"said after the bind":                        {binding(149, 200), []string{"fresh", "any", "any", "any", "fresh"}, tally{stale: 1}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := evidenceOf(t, tightened, unrelated, tc.bind)
			for i, word := range tc.says {
				p := builders.MakePool(testNS, pool).Annotation("freshbind.dev/admit", word).RV(int64(40 + 10*i)).Obj()
				see(t, e.ends, checker.Modified, p, 135+10*i)
			}
			e.report.Findings = []checker.Bind{{
				Namespace: testNS, Pool: pool, Sandbox: checker.Ref{Name: "python-1", UID: "s1"}, Warm: true, RV: "70", SeenAt: ms(300),
				StaleSince: "50", Findings: []checker.Finding{{Class: checker.Raced, Message: "runs a, in force was b"}},
			}}
			got := e.judge()
			got.notes, got.attacks = nil, nil
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(tally{})); diff != "" {
				t.Errorf("tally (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestJudgeCountsBindsAndLostEvents(t *testing.T) {
	e := evidenceOf(t)
	e.report.Namespaces = []checker.Summary{{Warm: 2, Cold: 1}, {Warm: 4}}
	e.report.EventGaps = []checker.EventGap{{}}
	if diff := cmp.Diff(tally{binds: 7, lost: 1, attacks: map[attack]raidTally{}}, e.judge(), cmp.AllowUnexported(tally{})); diff != "" {
		t.Errorf("tally (-want,+got):\n%s", diff)
	}
}

func TestJudgeDeletes(t *testing.T) {
	const claim = "c1"
	by := func(user string, at int) request { return write("delete", "sandboxes", "python-9", user, at, at+5) }
	dropped := write("delete", "sandboxclaims", claim, stormUser, 400, 405)
	byController := write("delete", "sandboxclaims", claim, upstream.User, 400, 405)
	cases := map[string]struct {
		requests []request
		owner    string
		want     []string
	}{
		"of an idle member": {requests: []request{by(upstream.User, 410)}, owner: "SandboxWarmPool"},
		"with its claim":    {requests: []request{dropped, by(collector, 410)}, owner: "SandboxClaim"},
		"by the storm":      {requests: []request{by(stormUser, 410)}, owner: "SandboxClaim"},
		"by whom it is of":  {requests: []request{by(hostileUser, 410)}, owner: "SandboxClaim"},
		"by the pool":       {[]request{by(upstream.User, 410)}, "SandboxClaim", []string{"sandbox storm-recreate/python-9 of claim c1 was deleted by " + upstream.User}},
		"before its claim":  {[]request{by(upstream.User, 390), dropped}, "SandboxClaim", []string{"sandbox storm-recreate/python-9 of claim c1 was deleted by " + upstream.User}},
		"with a claim that somebody else deleted":  {[]request{byController, by(collector, 410)}, "SandboxClaim", []string{"sandbox storm-recreate/python-9 of claim c1 was deleted by " + collector}},
		"by nobody that the log knows":             {nil, "SandboxClaim", []string{"sandbox storm-recreate/python-9 of claim c1 was deleted; the audit log does not show by whom"}},
		"by somebody whose request was turned off": {[]request{{verb: "delete", resource: "sandboxes", namespace: testNS, name: "python-9", code: 404, received: ms(410)}}, "SandboxClaim", []string{"sandbox storm-recreate/python-9 of claim c1 was deleted; the audit log does not show by whom"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := evidenceOf(t, tc.requests...)
			sandbox := builders.MakeMember(builders.MakePool(testNS, "python").Obj(), builders.MakeTemplate(testNS, "python").Obj()).
				Name("python-9").Owners(metav1.OwnerReference{Kind: tc.owner, Name: claim}).RV(80).Obj()
			see(t, e.ends, checker.Deleted, sandbox, 420)
			got := e.judge()
			if diff := cmp.Diff(tc.want, got.notes); diff != "" || got.killed != len(tc.want) {
				t.Errorf("%d killed, want %d; notes (-want,+got):\n%s", got.killed, len(tc.want), diff)
			}
		})
	}
}

// What is refused, or goes wrong, in the place and the time of an attack is counted
// for it.
func TestJudgeRaids(t *testing.T) {
	refused := func(namespace string, at int) request {
		r := write("patch", "sandboxes", "python-1", hostileUser, at, at+1)
		r.namespace, r.code, r.message = namespace, 422, "ValidatingAdmissionPolicy 'freshbind-used' with binding 'b' denied request: why"
		return r
	}
	of := func(do attack, namespace string, began, ended int) raided {
		return raided{raid{do: do}, namespace, ms(began), ms(ended)}
	}
	bind := func(namespace string, at int, class checker.Class) checker.Bind {
		return checker.Bind{Namespace: namespace, SeenAt: ms(at), Findings: []checker.Finding{{Class: class}, {Class: class}}}
	}
	e := evidenceOf(t, refused("a", 150), refused("a", 350), refused("b", 150), refused("b", 950))
	e.raids = []raided{of(attackImage, "a", 100, 200), of(attackReuse, "a", 300, 400), of(attackImage, "b", 100, 200), of(attackPlant, "b", 300, 400)}
	e.report.Findings = []checker.Bind{
		bind("a", 150, checker.Stale), bind("b", 350, checker.UsedMember), bind("a", 350, checker.Tolerated), bind("a", 250, checker.Stale),
	}
	want := map[attack]raidTally{
		attackImage: {tried: 2, refused: 2, broken: 1}, attackReuse: {tried: 1, refused: 1}, attackPlant: {tried: 1, broken: 1},
	}
	if diff := cmp.Diff(want, e.judge().attacks, cmp.AllowUnexported(raidTally{})); diff != "" {
		t.Errorf("attacks (-want,+got):\n%s", diff)
	}
}

// The Pod that counts is the one that the Sandbox had when it was bound.
func TestPodOf(t *testing.T) {
	s := newEnds(testNS)
	sandbox := builders.MakeMember(builders.MakePool(testNS, "python").Obj(), builders.MakeTemplate(testNS, "python").Obj()).UID("s1").Obj()
	for i, uid := range []string{"p1", "p2", "p3"} {
		see(t, s, checker.Added, builders.MakePod(sandbox).UID(uid).RV(int64(10*(i+1))).Obj(), i)
	}
	see(t, s, checker.Deleted, builders.MakePod(sandbox).UID("p2").RV(40).Obj(), 9)
	cases := map[string]struct {
		rv   checker.RV
		want checker.RV
	}{
		"before any":  {"5", ""},
		"the first":   {"15", "10"},
		"in between":  {"30", "20"},
		"the last":    {"99", "30"},
		"long digits": {"100", "30"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, ok := s.podOf("s1", tc.rv)
			if got.born != tc.want || ok != (tc.want != "") {
				t.Errorf("pod born at %q, found %t, want %q", got.born, ok, tc.want)
			}
		})
	}
	if got, _ := s.podOf("s1", "25"); !got.ended || !got.endSeen.Equal(ms(9)) {
		t.Errorf("the end of the second Pod is not known: %+v", got)
	}
}

// What other storms left behind in the same world is not this storm's.
func TestWithin(t *testing.T) {
	got := within(&checker.Report{
		Namespaces: []checker.Summary{{Namespace: "before", Cold: 1}, {Namespace: testNS, Warm: 2}},
		Findings:   []checker.Bind{{Namespace: "before"}, {Namespace: testNS}},
	}, []string{testNS})
	want := &checker.Report{
		Namespaces: []checker.Summary{{Namespace: testNS, Warm: 2}}, Findings: []checker.Bind{{Namespace: testNS}},
	}
	if diff := cmp.Diff(want.Namespaces, got.Namespaces, cmpopts.IgnoreUnexported(checker.Summary{})); diff != "" {
		t.Errorf("namespaces (-want,+got):\n%s", diff)
	}
	if len(got.Findings) != 1 || got.Findings[0].Namespace != testNS {
		t.Errorf("findings are %v", got.Findings)
	}
	s := newEnds(testNS)
	member := builders.MakeMember(builders.MakePool("before", "python").Obj(), builders.MakeTemplate("before", "python").Obj()).
		Name("python-9").Owners(metav1.OwnerReference{Kind: "SandboxClaim", Name: "c"}).Obj()
	see(t, s, checker.Deleted, member, 1)
	if lost := s.lost(); len(lost) > 0 {
		t.Errorf("lost elsewhere: %v", lost)
	}
}
