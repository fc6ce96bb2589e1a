package main

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestParseOptions(t *testing.T) {
	cases := map[string]struct {
		env  map[string]string
		want options
		err  string
	}{
		"by default":      {env: map[string]string{envSeed: "7"}, want: options{seed: 7, claims: 300, upstream: "v1.0.3"}},
		"everything":      {env: map[string]string{envSeed: "0", envClaims: "60", envUpstream: "v0.5.5"}, want: options{seed: 0, claims: 60, upstream: "v0.5.5"}},
		"a bad seed":      {env: map[string]string{envSeed: "-1"}, err: `STORM_SEED: "-1" is not a whole number of 0 or more`},
		"no number":       {env: map[string]string{envClaims: "many"}, err: `STORM_CLAIMS: "many" is not a whole number of 1 or more`},
		"too few":         {env: map[string]string{envClaims: "29"}, err: "STORM_CLAIMS: 29 are too few for a storm: use 30 or more"},
		"unknown release": {env: map[string]string{envUpstream: "v9"}, err: `STORM_UPSTREAM: "v9" is not a release that is here: use one of ` + strings.Join(upstream.Releases(), ", ") + ", kruise"},
		"another system":  {env: map[string]string{envSeed: "7", envUpstream: "kruise"}, want: options{seed: 7, claims: 300, upstream: "kruise"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := parseOptions(func(name string) string { return tc.env[name] })
			if message(err) != tc.err {
				t.Fatalf("error %q, want %q", message(err), tc.err)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(options{})); diff != "" {
				t.Errorf("options (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestParseTestStorms(t *testing.T) {
	storm := func(seed uint64, claims int) options { return options{seed: seed, claims: claims, upstream: "v1.0.3"} }
	cases := map[string]struct {
		env  map[string]string
		want []options
		err  string
	}{
		"by default":   {want: []options{storm(1, 60), storm(2, 60), storm(3, 60)}},
		"others":       {env: map[string]string{envTestSeeds: "9,8", envTestClaims: "90"}, want: []options{storm(9, 90), storm(8, 90)}},
		"a bad seed":   {env: map[string]string{envTestSeeds: "9,"}, err: `STORM_TEST_SEEDS: "" is not a whole number of 0 or more`},
		"a bad number": {env: map[string]string{envTestClaims: "0"}, err: `STORM_TEST_CLAIMS: "0" is not a whole number of 1 or more`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := testStorms(func(name string) string { return tc.env[name] })
			if message(err) != tc.err {
				t.Fatalf("error %q, want %q", message(err), tc.err)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(options{})); diff != "" {
				t.Errorf("storms (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestPlanDependsOnTheSeedAlone(t *testing.T) {
	unexported := cmp.AllowUnexported(step{}, content{})
	if diff := cmp.Diff(plan(5, 90), plan(5, 90), unexported); diff != "" {
		t.Errorf("one seed, two storms:\n%s", diff)
	}
	if cmp.Equal(plan(5, 90), plan(6, 90), unexported) {
		t.Error("two seeds, one storm")
	}
}

// planned is what a plan comes to.
type planned struct {
	made map[string]int
	now  [pools]content

	kept, dropped, killed int
	down                  bool
	wrong                 []string
}

func (p *planned) take(s step) {
	switch s.do {
	case doBurst:
		p.burst(s)
	case doDrop:
		p.drop(s)
	case doUpdate:
		p.complain(s.to == p.now[s.pool], "an update to what is there")
		p.now[s.pool] = s.to
	case doKill:
		p.complain(p.down, "killed while dead")
		p.down = true
		p.killed++
	case doRestart:
		p.complain(!p.down, "started while alive")
		p.down = false
	}
}

func (p *planned) burst(s step) {
	for _, name := range s.names {
		_, again := p.made[name]
		p.complain(again, "claim "+name+" is made twice")
		p.made[name] = s.pool
		if strings.HasPrefix(name, keptPrefix) {
			p.kept++
		}
	}
}

func (p *planned) drop(s step) {
	for _, name := range s.names {
		pool, ok := p.made[name]
		p.complain(!ok || pool != s.pool || !strings.HasPrefix(name, doomedPrefix), "claim "+name+" is not one to delete here")
		p.dropped++
	}
}

func (p *planned) complain(wrong bool, why string) {
	if wrong {
		p.wrong = append(p.wrong, why)
	}
}

// Whatever the seed, a storm makes every claim once, deletes exactly those that
// are to go, kills twice and starts again after each, and changes a template
// with every update.
func TestPlan(t *testing.T) {
	for seed := range uint64(200) {
		claims := minClaims + int(seed)
		got := planned{made: map[string]int{}}
		for i := range got.now {
			got.now[i] = firstContent()
		}
		for _, s := range plan(seed, claims) {
			got.take(s)
		}
		for _, wrong := range got.wrong {
			t.Errorf("seed %d: %s", seed, wrong)
		}
		if got.kept != claims || got.dropped != claims/spare || got.killed != kills || got.down {
			t.Errorf("seed %d: %d of %d claims made, %d of %d deleted again, %d kills of %d, down at the end: %t",
				seed, got.kept, claims, got.dropped, claims/spare, got.killed, kills, got.down)
		}
	}
}

func TestSettledBindsRaceWithNothing(t *testing.T) {
	claims := func(pool int, names ...string) step { return step{do: doBurst, pool: pool, names: names} }
	update, pod := step{do: doUpdate}, step{do: doPod}
	for name, tc := range map[string]struct {
		steps []step
		want  int
	}{
		"after the last update":       {[]step{claims(0, "c1"), update, claims(0, "c2", "c3")}, 2},
		"before an update":            {[]step{claims(0, "c1", "c2"), update}, 0},
		"of another pool's template":  {[]step{claims(1, "c1", "c2"), update}, 2},
		"deleted again":               {[]step{claims(0, "c1", "d1")}, 1},
		"a Pod is deleted after them": {[]step{claims(0, "c1", "c2"), pod}, 1},
		"no claims are left":          {[]step{claims(0, "c1"), pod, pod, claims(0, "c2")}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := settled(tc.steps); got != tc.want {
				t.Errorf("%d binds, want %d", got, tc.want)
			}
		})
	}
}

// Races by intention are a share of the claims, in short storms as in long ones.
func TestPlanBoundsRaces(t *testing.T) {
	for _, claims := range []int{60, 300} {
		racing, total := 0, 0
		for seed := range uint64(100) {
			p := draw(seed, claims)
			if p.racing*racers > p.total {
				t.Errorf("seed %d: an update follows %d of %d claims at once", seed, p.racing, p.total)
			}
			racing, total = racing+p.racing, total+p.total
		}
		if racing*3*racers < total {
			t.Errorf("of %d claims, an update follows %d at once: no storm has races", total, racing)
		}
	}
}

// Whatever the seed, every attack is made, and in a long storm in every place.
func TestPlanRaids(t *testing.T) {
	for name, tc := range map[string]struct {
		attacks     []attack
		attackFuncs map[attack]attackFunc
	}{
		"agent-sandbox":     {(&agentSandbox{}).attacks(), (&sandboxTenant{}).attackFuncs()},
		"OpenKruise Agents": {(&kruiseAgents{}).attacks(), (&setTenant{}).attackFuncs()},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(100) {
				short, long := map[attack]int{}, map[attack]map[int]bool{}
				for at, raids := range planRaids(seed, minClaims, tc.attacks) {
					for _, r := range raids {
						short[r.do]++
						if tc.attackFuncs[r.do] == nil {
							t.Fatalf("nobody knows how to make the attack %s", r.do)
						}
					}
					for _, r := range planRaids(seed, claimsPerRaid*len(tc.attacks)*len(places), tc.attacks)[at] {
						if long[r.do] == nil {
							long[r.do] = map[int]bool{}
						}
						long[r.do][at] = true
					}
				}
				for _, a := range tc.attacks {
					if short[a] == 0 || len(long[a]) != len(places) {
						t.Errorf("seed %d: attack %s comes %d times, in a long storm in %d places of %d", seed, a, short[a], len(long[a]), len(places))
					}
				}
			}
			if diff := cmp.Diff(planRaids(5, 90, tc.attacks), planRaids(5, 90, tc.attacks), cmp.AllowUnexported(raid{})); diff != "" {
				t.Errorf("one seed, two plans:\n%s", diff)
			}
		})
	}
	if got := planRaids(5, 90, nil); len(slices.Concat(got[:]...)) > 0 {
		t.Errorf("no attacks, and these raids: %v", got)
	}
}

func TestRaidsInWords(t *testing.T) {
	r := result{tally: tally{attacks: map[attack]raidTally{attackReuse: {tried: 3, refused: 2, broken: 1}}}}
	if want := "attack reuse            tried=3 refused=2 broken=1\n"; !strings.Contains(r.raids(), want) {
		t.Errorf("%q is not in:\n%s", want, r.raids())
	}
}

func TestResult(t *testing.T) {
	good := result{seed: 7, claims: 300, ready: 300, refused: 20, load: load{reads: 45, judged: 10, repaired: 6}, tally: tally{binds: 300, raced: 14, tolerated: 3}}
	with := func(change func(*result)) result {
		r := good
		change(&r)
		return r
	}
	cases := map[string]struct {
		result result
		want   []string
	}{
		"good":         {result: good},
		"stuck":        {result: with(func(r *result) { r.ready = 298 }), want: []string{"stuck: 2"}},
		"stale":        {result: with(func(r *result) { r.stale = 1 }), want: []string{"stale: 1"}},
		"duplicate":    {result: with(func(r *result) { r.duplicate = 1 }), want: []string{"duplicate: 1"}},
		"dead":         {result: with(func(r *result) { r.dead = 1 }), want: []string{"dead: 1"}},
		"used":         {result: with(func(r *result) { r.used = 1 }), want: []string{"used: 1"}},
		"foreign":      {result: with(func(r *result) { r.foreign = 1 }), want: []string{"foreign: 1"}},
		"misowned":     {result: with(func(r *result) { r.misowned = 1 }), want: []string{"misowned: 1"}},
		"misled":       {result: with(func(r *result) { r.misled = 1 }), want: []string{"misled: 1"}},
		"killed":       {result: with(func(r *result) { r.killed = 1 }), want: []string{"killed: 1"}},
		"ghosts":       {result: with(func(r *result) { r.ghosts = 1 }), want: []string{"ghosts: 1"}},
		"not judged":   {result: with(func(r *result) { r.unjudged = 1 }), want: []string{"not judged: 1"}},
		"lost events":  {result: with(func(r *result) { r.lost = 1 }), want: []string{"the recording lost events 1 times: what it shows proves nothing"}},
		"late":         {result: with(func(r *result) { r.late = []error{&scenario.LateError{What: "w", Within: time.Second, State: "s"}} }), want: []string{"not within 1s: w; there is: s"}},
		"named faults": {result: with(func(r *result) { r.killed, r.notes = 1, []string{"note"} }), want: []string{"note", "killed: 1"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.result.faults()); diff != "" {
				t.Errorf("faults (-want,+got):\n%s", diff)
			}
		})
	}
	want := "storm: seed=7 claims=300 ready=300 refused=20 repaired=6 tolerated=3 raced=14 stale=0 duplicate=0 dead=0 used=0 foreign=0 misowned=0 misled=0 killed=0 ghosts=0 stuck=0 reads/bind=4.5"
	if diff := cmp.Diff(want, good.line()); diff != "" {
		t.Errorf("line (-want,+got):\n%s", diff)
	}
}

func TestWhatStormsProveTogether(t *testing.T) {
	attacked := map[attack]raidTally{}
	for _, a := range attacks {
		attacked[a] = raidTally{tried: 1, refused: 1}
	}
	repairing := func(r result, n float64) result {
		r.load.repaired = n
		return r
	}
	of := func(refused, raced, binds int) result {
		return result{refused: refused, settled: 15, tally: tally{raced: raced, binds: binds, attacks: attacked}}
	}
	but := func(a attack, all raidTally) result {
		r := of(20, 0, 300)
		r.attacks = maps.Clone(attacked)
		r.attacks[a] = all
		return r
	}
	const noStorm = "fewer than 20 are no storm"
	cases := map[string]struct {
		storms []result
		want   []string
	}{
		"enough":               {[]result{of(20, 14, 300)}, nil},
		"few refused":          {[]result{of(19, 14, 300)}, []string{"only 19 writes were refused or repaired: " + noStorm}},
		"many raced":           {[]result{of(20, 45, 60)}, nil},
		"too many raced":       {[]result{of(20, 46, 60)}, []string{"14 binds did not race, of 15 or more that nothing could race with"}},
		"many in one, not all": {[]result{of(18, 60, 60), of(2, 30, 60)}, nil},
		"too many in all":      {[]result{of(9, 45, 60), of(9, 45, 60), of(9, 46, 60)}, []string{"44 binds did not race, of 45 or more that nothing could race with"}},
		"repaired instead":     {[]result{repairing(of(9, 14, 300), 11)}, nil},
		"few of both":          {[]result{repairing(of(9, 14, 300), 10)}, []string{"only 19 writes were refused or repaired: " + noStorm}},
		"few refused in all":   {[]result{of(9, 0, 60), of(9, 0, 60)}, []string{"only 18 writes were refused or repaired: " + noStorm}},
		"no such attack":       {[]result{but(attackFlood, raidTally{})}, []string{"attack flood was tried 0 times, and nothing was refused: it shows nothing"}},
		"never refused":        {[]result{but(attackFlood, raidTally{tried: 1})}, nil},
		"nothing was refused":  {[]result{but(attackReuse, raidTally{tried: 3})}, []string{"attack reuse was tried 3 times, and nothing was refused: it shows nothing"}},
		"refused in another":   {[]result{but(attackReuse, raidTally{tried: 3}), of(20, 0, 300)}, nil},
		"nothing":              {nil, []string{"only 0 writes were refused or repaired: " + noStorm, "0 binds did not race, of 1 or more that nothing could race with"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := unproven(tc.storms...)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}

func TestParseLoad(t *testing.T) {
	const metrics = `# TYPE freshbind_live_reads_total counter
freshbind_live_reads_total{resource="pods",result="found"} 7
freshbind_live_reads_total{resource="sandboxclaims",result="absent"} 1e+01
freshbind_live_reads_joined_total{resource="pods"} 5
freshbind_bind_verdicts_total{mode="enforce",operation="bind",platform="agent-sandbox",reason="",verdict="allow"} 3
freshbind_bind_verdicts_total{mode="enforce",operation="birth",platform="agent-sandbox",reason="",verdict="allow"} 90
freshbind_repairs_total{operation="coldstart",platform="agent-sandbox",result="admitted"} 4
freshbind_repairs_total{operation="birth",platform="agent-sandbox",result="admitted"} 2
`
	got, err := parseLoad(metrics)
	if diff := cmp.Diff(load{reads: 17, judged: 93, repaired: 6}, got, cmp.AllowUnexported(load{})); diff != "" || err != nil {
		t.Errorf("error %v, load (-want,+got):\n%s", err, diff)
	}
	if _, err := parseLoad("freshbind_live_reads_total{a=\"b\"} many\n"); err == nil {
		t.Error("a counter that is no number passes")
	}
	if n := (load{}).readsPerWrite(); n != 0 {
		t.Errorf("%f reads per write without a write", n)
	}
}
