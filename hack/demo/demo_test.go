package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/freshbind/freshbind/hack/demo/counts"
	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/test/scenario"
)

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// summary is of a namespace with so many claims, all of them warm and ready.
func summary(claims int, classes map[checker.Class]int) checker.Summary {
	return checker.Summary{
		Claims: claims, Warm: claims, Ready: claims, Classes: classes,
		ReadyP50: checker.Seconds(170 * time.Millisecond), ReadyP99: checker.Seconds(400 * time.Millisecond),
	}
}

func TestTable(t *testing.T) {
	guarded := summary(40, map[checker.Class]int{checker.Fresh: 39, checker.Raced: 1})
	guarded.Warm, guarded.Cold, guarded.ReadyP50 = 3, 37, checker.Seconds(2100*time.Millisecond)
	var out bytes.Buffer
	err := writeTable(&out,
		row{side: "unguarded", Summary: summary(40, map[checker.Class]int{checker.Stale: 40, checker.Duplicate: 2}), ghosts: unknown},
		row{side: "guarded", Summary: guarded})
	if err != nil {
		t.Fatal(err)
	}
	want := `               CLAIMS   STALE   WARM   COLD   READY      p50      p99   GHOSTS
   unguarded       40      40     40      0      40   0.17 s   0.40 s        ?
   guarded         40       0      3     37      40   2.10 s   0.40 s        0
unguarded, besides: 2 binds gave a claim a second sandbox, or took one from another claim
guarded, besides: 1 bind raced with an update
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("writeTable() (-want,+got):\n%s", diff)
	}
}

func bind(namespace, claim string, class checker.Class) checker.Bind {
	b := checker.Bind{
		Namespace: namespace, Claim: checker.Ref{Name: claim, UID: "u1"}, Sandbox: checker.Ref{Name: "python-x", UID: "u2"},
		Warm: true, RV: "40", Pool: "python", Class: class, StaleSince: "30", AdmittedAfter: "35",
		Found: checker.Revision{Template: "python", RV: "10", Digest: "aaa"}, Expected: checker.Revision{Template: "python", RV: "30", Digest: "bbb"},
		Difference: "containers[0].image v1 -> v2",
	}
	if class != checker.Fresh {
		b.Findings = []checker.Finding{{Class: class}}
	}
	return b
}

func TestRoundLine(t *testing.T) {
	cold := bind("ns", "c1-3", checker.Fresh)
	cold.Warm = false
	binds := ofRound([]checker.Bind{
		bind("ns", "c1-1", checker.Stale), bind("ns", "c1-2", checker.Stale), cold,
		bind("ns", "c10-1", checker.Stale), bind("other", "c1-1", checker.Stale),
	}, "ns", "c1-")
	cases := map[string]struct {
		took    time.Duration
		refused *scenario.Refused
		want    string
	}{
		"unguarded": {
			took: 250 * time.Millisecond,
			want: "  ns          2 stale   2 warm,  1 cold, all ready in 0.25 s   c1-1 -> python-x: containers[0].image v1 -> v2",
		},
		"guarded, not all ready": {
			refused: &scenario.Refused{Binds: 12, ColdStarts: 1, Repaired: 9},
			want: "  ns          2 stale   2 warm,  1 cold   c1-1 -> python-x: containers[0].image v1 -> v2" +
				"   9 repaired; refused: 12 binds, 1 cold start, 0 new members",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, roundLine("ns", binds, tc.took, tc.refused)); diff != "" {
				t.Errorf("roundLine() (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestBindInFull(t *testing.T) {
	b := bind("ns", "c1-1", checker.Stale)
	b.StaleFor = checker.Seconds(280 * time.Millisecond)
	want := []string{
		"  claim     ns/c1-1 (uid u1)",
		"  sandbox   python-x (uid u2), bound warm, out of pool python, at resourceVersion 40",
		"  found     python@10 (aaa)",
		"  expected  python@30 (bbb), in force since resourceVersion 30; the bind was admitted after 35 and stored 0.28 s after the update",
		"  differs   containers[0].image v1 -> v2 (found -> expected)",
	}
	if diff := cmp.Diff(want, bindInFull(b)); diff != "" {
		t.Errorf("bindInFull() (-want,+got):\n%s", diff)
	}
}

func TestPriceLines(t *testing.T) {
	cheap, dear := row{Summary: summary(40, nil)}, row{Summary: summary(40, nil)}
	dear.ReadyP50 = checker.Seconds(2070 * time.Millisecond)
	for name, tc := range map[string]struct{ got, want string }{
		"late": {
			options{lag: 1500 * time.Millisecond, lagOn: []string{"templates"}}.priceLine(cheap, dear),
			"price of freshness here: +1.90 s until a claim is ready (p50), with templates seen 1.5 s late; with another lag: DEMO_LAG=10 make demo",
		},
		"all late": {
			options{lag: time.Second, lagOn: []string{"templates", "pools", "sandboxes"}}.priceLine(cheap, dear),
			"price of freshness here: +1.90 s until a claim is ready (p50), with templates, pools and sandboxes seen 1.0 s late; with another lag: DEMO_LAG=10 make demo",
		},
		"not late": {options{lagOn: []string{"templates"}}.priceLine(cheap, dear), "price of freshness here: +1.90 s until a claim is ready (p50)"},
		"slower after an update": {
			coldLine(dear, 1820*time.Millisecond), "a cold start with no update before it took 1.82 s (p50): those after an update took +0.25 s",
		},
		"faster": {coldLine(dear, 2170*time.Millisecond), "a cold start with no update before it took 2.17 s (p50): those after an update took -0.10 s"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.got); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}

func TestHalfReady(t *testing.T) {
	start := time.Unix(100, 0)
	claim := func(namespace, name string, after time.Duration) checker.ClaimRecord {
		c := checker.ClaimRecord{Namespace: namespace, Claim: checker.Ref{Name: name}, CreatedSeen: start}
		if after > 0 {
			c.ReadySeen = start.Add(after)
		}
		return c
	}
	cases := map[string]struct {
		claims []checker.ClaimRecord
		want   time.Duration
	}{
		"none": {},
		"in the order in which they were made": {
			claims: []checker.ClaimRecord{
				claim("ns", "q-1", 3*time.Second), claim("ns", "q-2", time.Second), claim("ns", "q-3", 2*time.Second),
			},
			want: 2 * time.Second,
		},
		"an even number, as the table's p50": {
			claims: []checker.ClaimRecord{claim("ns", "q-1", 3*time.Second), claim("ns", "q-2", time.Second)},
			want:   time.Second,
		},
		"others beside them": {
			claims: []checker.ClaimRecord{
				claim("ns", "q-1", time.Second), claim("ns", "c-1", 0), claim("other", "q-1", 0), claim("ns", "c-2", time.Hour),
			},
			want: time.Second,
		},
		"one is not ready": {claims: []checker.ClaimRecord{claim("ns", "q-1", time.Second), claim("ns", "q-2", 0)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := halfReady(tc.claims, "ns", "q-"); got != tc.want {
				t.Errorf("halfReady() = %s, want %s", got, tc.want)
			}
		})
	}
}

func TestOutcome(t *testing.T) {
	stale := func(n int) map[checker.Class]int { return map[checker.Class]int{checker.Stale: n} }
	good := func() outcome {
		return outcome{
			unguarded: row{side: "unguarded", Summary: summary(40, stale(38)), ghosts: unknown},
			guarded:   row{side: "guarded", Summary: summary(40, nil)}, claims: 40,
		}
	}
	cases := map[string]struct {
		change func(*outcome)
		want   []string
	}{
		"shown":            {func(*outcome) {}, nil},
		"a stale bind":     {func(o *outcome) { o.guarded.Classes = stale(1) }, []string{"1 stale bind in the guarded namespace"}},
		"not ready":        {func(o *outcome) { o.guarded.Ready = 39 }, []string{"1 of 40 claims in the guarded namespace did not become ready"}},
		"a ghost":          {func(o *outcome) { o.guarded.ghosts = 1 }, []string{"ghosts in the guarded namespace: 1"}},
		"no probe":         {func(o *outcome) { o.guarded.ghosts = unknown }, []string{"ghosts in the guarded namespace: ?"}},
		"events lost":      {func(o *outcome) { o.lost = 2 }, []string{"the recording lost events 2 times: what it shows proves nothing"}},
		"judged too early": {func(o *outcome) { o.unsettled = 3 }, []string{"3 binds were judged before all events had arrived"}},
		"a bad bind": {
			func(o *outcome) { o.guarded.Classes = map[checker.Class]int{checker.DeadMember: 1} },
			[]string{"in the guarded namespace: 1 bind took a dead member"},
		},
		"not judged": {
			func(o *outcome) { o.guarded.Classes = map[checker.Class]int{checker.Unjudged: 1} },
			[]string{"in the guarded namespace: 1 bind could not be judged"},
		},
		"not recorded": {
			func(o *outcome) { o.guarded.Summary = summary(0, nil) },
			[]string{"40 claims were made in each namespace, 40 unguarded and 0 guarded ones recorded"},
		},
		"nothing to guard against": {
			func(o *outcome) { o.unguarded.Classes = nil },
			[]string{"no stale bind in the unguarded namespace: this release, as late as it was here, did not need a guard (a later template watch, or another DEMO_UPSTREAM, does)"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := good()
			tc.change(&o)
			if diff := cmp.Diff(tc.want, o.failures()); diff != "" {
				t.Errorf("failures() (-want,+got):\n%s", diff)
			}
		})
	}
	if diff := cmp.Diff("demo: unguarded stale=38 guarded stale=0 claims=40 ready=40", good().lastLine()); diff != "" {
		t.Errorf("lastLine() (-want,+got):\n%s", diff)
	}
}

func TestServerAddress(t *testing.T) {
	cases := map[string]string{
		"https://10.0.0.1:6443":       "10.0.0.1:6443",
		"https://k8s.example.com":     "k8s.example.com:443",
		"https://k8s.example.com/api": "k8s.example.com:443",
		"10.0.0.1:6443":               "10.0.0.1:6443",
		"https://[::1]:6443":          "[::1]:6443",
	}
	for host, want := range cases {
		t.Run(host, func(t *testing.T) {
			got, err := serverAddress(host)
			if err != nil || got != want {
				t.Errorf("serverAddress(%q) = %q, %v, want %q", host, got, err, want)
			}
		})
	}
}

// rolled is a second act in which everything went well.
func rolled() (*rolling, checker.Summary) {
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	s := summary(rollingClaims, nil)
	s.Warm, s.Cold = 4, 1
	return &rolling{
		from: "v1", to: "v2", made: rollingClaims, end: start.Add(4 * time.Second),
		instants: []counts.Instant{
			{At: start, Ready: 16},
			{At: start.Add(time.Second), Ready: 12, Replacing: 4},
			{At: start.Add(2 * time.Second), Ready: 12, Claimable: 8, Replacing: 4},
			{At: start.Add(3 * time.Second), Ready: 16, Claimable: 16},
		},
	}, s
}

func TestInTurn(t *testing.T) {
	p := &play{sides: []*side{{name: "unguarded"}, {name: "guarded"}}}
	for name, tc := range map[string]struct {
		number int
		fails  string
		want   []string
	}{
		"an odd round":            {number: 1, want: []string{"guarded", "unguarded"}},
		"an even round":           {number: 2, want: []string{"unguarded", "guarded"}},
		"the first of both fails": {number: 2, fails: "unguarded", want: []string{"unguarded"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			failure := errors.New("gone")
			err := p.inTurn(tc.number, func(s *side) error {
				got = append(got, s.name)
				if s.name == tc.fails {
					return failure
				}
				return nil
			})
			if failed := errors.Is(err, failure); failed != (tc.fails != "") {
				t.Errorf("inTurn() = %v", err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("inTurn() (-want,+got):\n%s", diff)
			}
		})
	}
}

// A second of four is 17 columns. One in which something changes shows the
// lower of both counts.
func TestSecondAct(t *testing.T) {
	r, s := rolled()
	s.Classes = map[checker.Class]int{checker.Tolerated: 1}
	want := []string{
		"members over time: █ claimable   ░ ready, and hidden from claims",
		"   16 " + strings.Repeat(readyOnly, 17) + strings.Repeat(" ", 35) + strings.Repeat(claimable, 16),
		"   14 " + strings.Repeat(readyOnly, 17) + strings.Repeat(" ", 35) + strings.Repeat(claimable, 16),
		"   12 " + strings.Repeat(readyOnly, 52) + strings.Repeat(claimable, 16),
		"   10 " + strings.Repeat(readyOnly, 52) + strings.Repeat(claimable, 16),
		"    8 " + strings.Repeat(readyOnly, 35) + strings.Repeat(claimable, 33),
		"    6 " + strings.Repeat(readyOnly, 35) + strings.Repeat(claimable, 33),
		"    4 " + strings.Repeat(readyOnly, 35) + strings.Repeat(claimable, 33),
		"    2 " + strings.Repeat(readyOnly, 35) + strings.Repeat(claimable, 33),
		"      |0 s             |1 s             |2 s             |3 s",
		"at most 4 of 16 members in replacement at once, done in 4.00 s",
		"5 of 5 claims ready (p50 0.17 s), 4 warm, 1 cold, 0 stale",
		"besides: 1 bind stale by the pool's own strategy",
	}
	if diff := cmp.Diff(want, r.lines(s)); diff != "" {
		t.Errorf("lines() (-want,+got):\n%s", diff)
	}
}

func TestSecondActFailures(t *testing.T) {
	cases := map[string]struct {
		change func(*rolling, *checker.Summary)
		want   []string
	}{
		"shown":                 {func(*rolling, *checker.Summary) {}, nil},
		"stale by its strategy": {func(_ *rolling, s *checker.Summary) { s.Classes = map[checker.Class]int{checker.Tolerated: 5} }, nil},
		"too many at once": {
			func(r *rolling, _ *checker.Summary) { r.instants[1].Replacing = 5 },
			[]string{"second act: 5 members were in replacement at once, more than 4"},
		},
		"none at all": {
			func(r *rolling, _ *checker.Summary) { r.instants = r.instants[:1] },
			[]string{"second act: no member was replaced"},
		},
		"late": {
			func(r *rolling, s *checker.Summary) {
				r.late, r.instants, r.made, *s = []string{"too late"}, nil, 0, summary(0, nil)
			},
			[]string{"second act: too late"},
		},
		"a claim not ready": {
			func(_ *rolling, s *checker.Summary) { s.Ready = 4 },
			[]string{"second act: 1 of 5 claims did not become ready"},
		},
		"a claim not recorded": {
			func(_ *rolling, s *checker.Summary) { s.Claims, s.Ready = 4, 4 },
			[]string{"second act: 5 claims were made, 4 recorded"},
		},
		"a stale bind": {
			func(_ *rolling, s *checker.Summary) { s.Classes = map[checker.Class]int{checker.Stale: 1} },
			[]string{"second act: 1 stale bind while the pool said that it serves none"},
		},
		"a bad bind": {
			func(_ *rolling, s *checker.Summary) { s.Classes = map[checker.Class]int{checker.DeadMember: 1} },
			[]string{"second act: 1 bind took a dead member"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, s := rolled()
			tc.change(r, &s)
			if diff := cmp.Diff(tc.want, r.failures(s)); diff != "" {
				t.Errorf("failures() (-want,+got):\n%s", diff)
			}
		})
	}
}
