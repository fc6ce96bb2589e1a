package scenario

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/test/builders"
)

func TestParseLag(t *testing.T) {
	cases := map[string]struct {
		want time.Duration
		err  string
	}{
		"1.5s":  {want: 1500 * time.Millisecond},
		"1.5":   {want: 1500 * time.Millisecond},
		"0":     {},
		"250ms": {want: 250 * time.Millisecond},
		"60":    {want: time.Minute},
		"late":  {err: `"late" is neither a duration (1.5s) nor a number of seconds (1.5)`},
		"-1":    {err: "-1 is not between 0 and 1m0s"},
		"2m":    {err: "2m is not between 0 and 1m0s"},
		"NaN":   {err: "NaN is not between 0 and 1m0s"},
		"1e300": {err: "1e300 is not between 0 and 1m0s"},
	}
	for text, tc := range cases {
		t.Run(text, func(t *testing.T) {
			got, err := ParseLag(text)
			if got != tc.want || message(err) != tc.err {
				t.Errorf("ParseLag(%q) = %v, %q, want %v, %q", text, got, message(err), tc.want, tc.err)
			}
		})
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestParseCount(t *testing.T) {
	cases := map[string]struct {
		want int
		err  string
	}{
		"4":   {want: 4},
		"0":   {err: `"0" is not a whole number of 1 or more`},
		"2.5": {err: `"2.5" is not a whole number of 1 or more`},
	}
	for text, tc := range cases {
		t.Run(text, func(t *testing.T) {
			got, err := ParseCount(text)
			if got != tc.want || message(err) != tc.err {
				t.Errorf("ParseCount(%q) = %v, %q, want %v, %q", text, got, message(err), tc.want, tc.err)
			}
		})
	}
}

const verdicts = `# TYPE freshbind_bind_verdicts_total counter
freshbind_bind_verdicts_total{mode="audit",operation="bind",platform="agent-sandbox",reason="StaleRevision",verdict="deny"} 40
freshbind_bind_verdicts_total{mode="enforce",operation="bind",platform="agent-sandbox",reason="StaleRevision",verdict="deny"} 12
freshbind_bind_verdicts_total{mode="enforce",operation="bind",platform="agent-sandbox",reason="MemberTerminating",verdict="deny"} 3
freshbind_bind_verdicts_total{mode="enforce",operation="bind",platform="agent-sandbox",reason="Fresh",verdict="allow"} 9
freshbind_bind_verdicts_total{mode="enforce",operation="coldstart",platform="agent-sandbox",reason="StaleRevision",verdict="deny"} 1.2e+03
freshbind_bind_verdicts_total{mode="enforce",operation="birth",platform="agent-sandbox",reason="StaleRevision",verdict="deny"} 2
freshbind_bind_verdicts_total{mode="enforce",operation="return",platform="openkruise-agents",reason="MemberUsed",verdict="deny"} 6
freshbind_repairs_total{operation="coldstart",platform="agent-sandbox",result="admitted"} 11
freshbind_repairs_total{operation="coldstart",platform="agent-sandbox",result="refused"} 2
freshbind_repairs_total{operation="birth",platform="agent-sandbox",result="admitted"} 3
freshbind_live_reads_total{resource="pods",result="found"} 7
`

func TestParseRefused(t *testing.T) {
	cases := map[string]struct {
		metrics string
		want    Refused
		err     string
	}{
		"denials in mode enforce": {metrics: verdicts, want: Refused{Binds: 15, ColdStarts: 1200, Births: 2, Returns: 6, Repaired: 11}},
		"none yet":                {metrics: "go_goroutines 12\n"},
		"both halves of a bind of a bare pod": {
			metrics: `freshbind_bind_verdicts_total{mode="enforce",operation="release",verdict="deny"} 3` + "\n" +
				`freshbind_bind_verdicts_total{mode="enforce",operation="warmstart",verdict="deny"} 2`,
			want: Refused{Binds: 5},
		},
		"an operation that is not known": {
			metrics: `freshbind_bind_verdicts_total{mode="enforce",operation="theft",verdict="deny"} 1`,
			err:     `read freshbind_bind_verdicts_total: operation "theft" is not known`,
		},
		"a value that is no number": {
			metrics: `freshbind_bind_verdicts_total{mode="enforce",operation="bind",verdict="deny"} many`,
			err:     `read metrics: text format parsing error in line 1: expected float as value, got "many"`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := ParseRefused(tc.metrics)
			if diff := cmp.Diff(tc.want, got); diff != "" || message(err) != tc.err {
				t.Errorf("ParseRefused() error %q, want %q (-want,+got):\n%s", message(err), tc.err, diff)
			}
		})
	}
	since := Refused{5, 4, 3, 8, 9}.Minus(Refused{1, 1, 3, 2, 2})
	if diff := cmp.Diff(Refused{Binds: 4, ColdStarts: 3, Returns: 6, Repaired: 7}, since); diff != "" {
		t.Errorf("Minus() (-want,+got):\n%s", diff)
	}
	if diff := cmp.Diff(Refused{5, 4, 3, 8, 9}, since.Plus(Refused{1, 1, 3, 2, 2})); diff != "" {
		t.Errorf("Plus() (-want,+got):\n%s", diff)
	}
}

func TestAtRest(t *testing.T) {
	good := Member{Name: "a", UID: "1", Image: "v1", Ready: true, Shown: true}
	with := func(change func(*Member)) []Member {
		m := good
		change(&m)
		return []Member{good, m}
	}
	cases := map[string]struct {
		members []Member
		image   string
		want    bool
		words   string
	}{
		"all good":       {[]Member{good, good}, "v1", true, "2 members, 2 ready, 0 hidden, 0 being deleted [2 of v1]"},
		"any image":      {with(func(m *Member) { m.Image = "v2" }), "", true, "2 members, 2 ready, 0 hidden, 0 being deleted [1 of v1, 1 of v2]"},
		"another image":  {with(func(m *Member) { m.Image = "v2" }), "v1", false, "2 members, 2 ready, 0 hidden, 0 being deleted [1 of v1, 1 of v2]"},
		"one not ready":  {with(func(m *Member) { m.Ready = false }), "v1", false, "2 members, 1 ready, 0 hidden, 0 being deleted [2 of v1]"},
		"one hidden":     {with(func(m *Member) { m.Shown = false }), "v1", false, "2 members, 1 ready, 1 hidden, 0 being deleted [2 of v1]"},
		"one leaves":     {with(func(m *Member) { m.Deleting = true }), "v1", false, "2 members, 1 ready, 0 hidden, 1 being deleted [2 of v1]"},
		"one too few":    {[]Member{good}, "v1", false, "1 members, 1 ready, 0 hidden, 0 being deleted [1 of v1]"},
		"one too many":   {[]Member{good, good, good}, "v1", false, "3 members, 3 ready, 0 hidden, 0 being deleted [3 of v1]"},
		"nothing at all": {nil, "v1", false, "0 members, 0 ready, 0 hidden, 0 being deleted []"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := atRest(tc.members, 2, tc.image); got != tc.want {
				t.Errorf("atRest() = %v, want %v", got, tc.want)
			}
			if diff := cmp.Diff(tc.words, describe(tc.members)); diff != "" {
				t.Errorf("describe() (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestMembersOfObjects(t *testing.T) {
	template := builders.MakeTemplate("ns", "python").Image("v7").Obj()
	pool := builders.MakePool("ns", "python").Obj()
	claim := builders.MakeClaim("ns", "c1").Obj()
	member := builders.MakeMember(pool, template).Name("python-1").Ready(true)
	cases := map[string]struct {
		sandbox *unstructured.Unstructured
		pool    string
		want    *Member
	}{
		"ready":  {member.Obj(), "python", &Member{Name: "python-1", UID: member.Obj().GetUID(), Image: "v7", Ready: true, Shown: true}},
		"hidden": {builders.SandboxFrom(member.Obj()).NoLabel(builders.LabelTemplateRef).Obj(), "python", &Member{Name: "python-1", UID: member.Obj().GetUID(), Image: "v7", Ready: true}},
		"leaves": {
			builders.SandboxFrom(member.Obj()).Deleting(time.Unix(1, 0)).Ready(false).Obj(), "python",
			&Member{Name: "python-1", UID: member.Obj().GetUID(), Image: "v7", Shown: true, Deleting: true},
		},
		"of another pool": {member.Obj(), "node", nil},
		"of a claim":      {builders.MakeColdStart(claim, template).Obj(), "python", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got *Member
			if isMember(tc.sandbox, tc.pool) {
				m := memberOf(tc.sandbox)
				got = &m
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}

func TestStillThere(t *testing.T) {
	waiting := []Member{{Name: "a", UID: "1"}, {Name: "b", UID: "2"}, {Name: "c", UID: "3"}, {Name: "d", UID: "4"}, {Name: "e", UID: "5"}}
	stored := []Member{
		{Name: "a", UID: "1", Ready: true, Shown: true},
		{Name: "b", UID: "2", Ready: true},
		{Name: "c", UID: "3", Ready: true, Shown: true, Deleting: true},
		{Name: "d", UID: "another one of that name", Ready: true, Shown: true},
		{Name: "f", UID: "6", Ready: true, Shown: true},
	}
	want := []Member{{Name: "a", UID: "1"}}
	if diff := cmp.Diff(want, stillThere(waiting, stored)); diff != "" {
		t.Errorf("stillThere() (-want,+got):\n%s", diff)
	}
}

func TestUnready(t *testing.T) {
	claim := func(name string) *builders.Claim { return builders.MakeClaim("ns", name) }
	refused := claim("c2").Set([]any{map[string]any{
		"type": "Ready", "status": "False", "reason": "ReconcilerError", "message": "Error seen",
	}}, "status", "conditions").Obj()
	stored := []unstructured.Unstructured{*claim("c1").Ready(true).Obj(), *refused, *claim("c3").Obj()}
	got := unreadyAmong(stored, []string{"c1", "c2", "c3", "c4"})
	want := []UnreadyClaim{
		{Name: "c2", Reason: "ReconcilerError", Message: "Error seen"}, {Name: "c3"}, {Name: "c4", Reason: "NotFound"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unreadyAmong() (-want,+got):\n%s", diff)
	}
	err := &UnreadyError{Namespace: "ns", Waited: 5, Within: time.Second, Claims: append(got, UnreadyClaim{Name: "c5", Reason: "Same"})}
	text := "4 of 5 claims in ns not ready within 1s: c2 (ReconcilerError: Error seen); c3 (no condition yet); c4 (NotFound); c5"
	if diff := cmp.Diff(text, err.Error()); diff != "" {
		t.Errorf("Error() (-want,+got):\n%s", diff)
	}
}

func TestUntil(t *testing.T) {
	failure := errors.New("no connection")
	canceled, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("etcd ended"))
	cases := map[string]struct {
		ctx       context.Context
		condition func(context.Context) (string, bool, error)
		want      string
		late      bool
	}{
		"done": {t.Context(), func(context.Context) (string, bool, error) { return "", true, nil }, "", false},
		"not in time": {
			t.Context(), func(context.Context) (string, bool, error) { return "1 of 2", false, nil },
			"not within 1ns: two things; there is: 1 of 2", true,
		},
		"a request fails": {
			t.Context(), func(context.Context) (string, bool, error) { return "", false, failure },
			"wait for two things: no connection", false,
		},
		"interrupted": {
			canceled, func(context.Context) (string, bool, error) { return "1 of 2", false, nil },
			"wait for two things: etcd ended", false,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := until(tc.ctx, time.Nanosecond, "two things", tc.condition)
			if message(err) != tc.want || TooLate(err) != tc.late {
				t.Errorf("until() = %q, too late %v, want %q, %v", message(err), TooLate(err), tc.want, tc.late)
			}
		})
	}
}

func TestClaimForms(t *testing.T) {
	p := Pool{Name: "pool", Template: "template"}
	cases := map[string]map[string]any{
		"v1beta1":  {"warmPoolRef": map[string]any{"name": "pool"}},
		"v1alpha1": {"sandboxTemplateRef": map[string]any{"name": "template"}, "warmpool": "pool"},
	}
	for version, want := range cases {
		t.Run(version, func(t *testing.T) {
			n := &Namespace{Name: "ns", Version: version}
			got := n.Claim(p, "c1")
			if diff := cmp.Diff(want, got.Object["spec"]); diff != "" {
				t.Errorf("spec (-want,+got):\n%s", diff)
			}
			if want := builders.GroupExtensions + "/" + version; got.GetAPIVersion() != want {
				t.Errorf("apiVersion is %s, want %s", got.GetAPIVersion(), want)
			}
		})
	}
}

func TestWords(t *testing.T) {
	cases := map[string]struct {
		classes map[checker.Class]int
		want    string
		sound   bool
	}{
		"fresh only":    {map[checker.Class]int{checker.Fresh: 3}, "", true},
		"stale is told": {map[checker.Class]int{checker.Stale: 3}, "", true},
		"raced":         {map[checker.Class]int{checker.Raced: 2}, "2 binds raced with an update", true},
		"not judged":    {map[checker.Class]int{checker.Unjudged: 1}, "1 bind could not be judged", false},
		"bad ones": {
			map[checker.Class]int{checker.Duplicate: 1, checker.UsedMember: 2},
			"1 bind gave a claim a second sandbox, or took one from another claim; 2 binds took a used member", false,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := checker.Summary{Classes: tc.classes}
			if got := Besides(s); got != tc.want || Sound(s) != tc.sound {
				t.Errorf("Besides() = %q, Sound() = %v, want %q, %v", got, Sound(s), tc.want, tc.sound)
			}
		})
	}
}
