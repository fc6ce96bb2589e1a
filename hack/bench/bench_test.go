package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freshbind/freshbind/hack/demo/counts"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/upstream"
)

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

const usualLag = 1500 * time.Millisecond

var usuallyLate = []schema.GroupResource{upstream.SandboxTemplates}

func TestParseOptions(t *testing.T) {
	cases := map[string]struct {
		env  map[string]string
		want options
		err  string
	}{
		"rollout": {env: map[string]string{envBench: "rollout"}, want: options{bench: "rollout", pairs: 5, pools: 100, lag: usualLag, late: usuallyLate}},
		"small ones": {
			env:  map[string]string{envBench: "pools", envMembers: "10", envPairs: "1", envPools: "3"},
			want: options{bench: "pools", members: 10, pairs: 1, pools: 3, lag: usualLag, late: usuallyLate},
		},
		"pools and sandboxes late": {
			env:  map[string]string{envBench: "ready", envLag: "10", envLate: "sandboxwarmpools,sandboxes"},
			want: options{bench: "ready", pairs: 5, pools: 100, lag: 10 * time.Second, late: []schema.GroupResource{upstream.SandboxWarmPools, upstream.Sandboxes}},
		},
		"everything late": {
			env:  map[string]string{envBench: "ready", envLate: "all"},
			want: options{bench: "ready", pairs: 5, pools: 100, lag: usualLag, late: []schema.GroupResource{upstream.SandboxTemplates, upstream.SandboxWarmPools, upstream.Sandboxes}},
		},
		"no lag": {env: map[string]string{envBench: "ready", envLag: "soon"}, err: `BENCH_LAG: "soon" is neither a duration (1.5s) nor a number of seconds (1.5)`},
		"late, but not known": {
			env: map[string]string{envBench: "ready", envLate: "nodes"},
			err: `BENCH_LATE: "nodes" is not late: use some of sandboxtemplates, sandboxwarmpools, sandboxes, separated by commas, or all`,
		},
		"none":     {err: `BENCH: "" is no benchmark: use one of bind, hostile, memory, pools, ready, rollout, scheduler, sustained, or all for every one`},
		"another":  {env: map[string]string{envBench: "binds"}, err: `BENCH: "binds" is no benchmark: use one of bind, hostile, memory, pools, ready, rollout, scheduler, sustained, or all for every one`},
		"no pairs": {env: map[string]string{envBench: "rollout", envPairs: "0"}, err: `BENCH_PAIRS: "0" is not a whole number of 1 or more`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := parseOptions(func(name string) string { return tc.env[name] })
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(options{})); diff != "" || message(err) != tc.err {
				t.Errorf("parseOptions() error %q, want %q (-want,+got):\n%s", message(err), tc.err, diff)
			}
		})
	}
}

const auditLines = `{"stage":"RequestReceived","verb":"delete","userAgent":"freshbind/1","objectRef":{"resource":"sandboxes","name":"a"}}
{"stage":"ResponseComplete","verb":"delete","userAgent":"freshbind/1","objectRef":{"resource":"sandboxes","name":"a"},"responseStatus":{"code":200},"stageTimestamp":"2026-01-01T12:00:01.5Z"}
{"stage":"ResponseComplete","verb":"delete","userAgent":"freshbind/1","objectRef":{"resource":"sandboxes","name":"b"},"responseStatus":{"code":409},"stageTimestamp":"2026-01-01T12:00:02Z"}
{"stage":"ResponseComplete","verb":"watch","userAgent":"freshbind/1","objectRef":{"resource":"sandboxes"},"responseStatus":{"code":200}}
{"stage":"ResponseComplete","verb":"get","userAgent":"freshbind/1 (live reads)","objectRef":{"resource":"sandboxwarmpools","name":"p"},"responseStatus":{"code":200}}
{"stage":"ResponseComplete","verb":"delete","userAgent":"bench-bare-loop","objectRef":{"resource":"sandboxes","name":"c"},"responseStatus":{"code":200}}
{"stage":"ResponseComplete","verb":"patch","userAgent":"freshbind/1","objectRef":{"resource":"sandboxwarmpools","name":"p","subresource":"status"},"responseStatus":{"code":200}}
`

func TestAuditLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	before := []byte("what was before is skipped\n")
	if err := os.WriteFile(path, before, 0o600); err != nil {
		t.Fatal(err)
	}
	l := &auditLog{path: path}
	if err := l.skip(); err != nil {
		t.Fatal(err)
	}
	const half = `{"stage":"ResponseComplete","verb":"get","userAgent":"freshbind/1"`
	if err := os.WriteFile(path, append(before, auditLines+half...), 0o600); err != nil {
		t.Fatal(err)
	}
	requests, err := l.next()
	if err != nil {
		t.Fatal(err)
	}
	removed, others := deletes(by(requests, agentPrefix))
	if len(removed) != 1 || !last(removed).Equal(time.Date(2026, 1, 1, 12, 0, 1, 5e8, time.UTC)) {
		t.Errorf("deletes() = %v, the last at %s, want the one of a", removed, last(removed))
	}
	want := "1 delete sandboxes 409, 1 get sandboxwarmpools 200, 1 patch sandboxwarmpools/status 200"
	if diff := cmp.Diff(want, kinds(others)); diff != "" {
		t.Errorf("others (-want,+got):\n%s", diff)
	}
	if err := os.WriteFile(path, append(before, auditLines+half+",\"requestURI\":\"/apis?timeout=1s\"}\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	if requests, err = l.next(); err != nil || kinds(requests) != "1 get /apis 0" {
		t.Errorf("next() = %s, %v, want what was half written before", kinds(requests), err)
	}
}

func TestSkippingEndsAtAWholeLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	const before, half, rest = "what was before is skipped\n", `{"stage":"Respon`, "seComplete\",\"verb\":\"get\",\"requestURI\":\"/apis\"}\n"
	if err := os.WriteFile(path, []byte(before+half), 0o600); err != nil {
		t.Fatal(err)
	}
	l := &auditLog{path: path}
	if err := l.skip(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(before+half+rest), 0o600); err != nil {
		t.Fatal(err)
	}
	if requests, err := l.next(); err != nil || kinds(requests) != "1 get /apis 0" {
		t.Errorf("next() = %s, %v, want the one that was half written", kinds(requests), err)
	}
}

// took is a pair whose rollout took so many tenths of a second, and its bare
// loop one second.
func TestWhatIsAskedAtFixedTimesIsNotOfARollout(t *testing.T) {
	of := func(verb, resource, uri string) request {
		r := request{Verb: verb, RequestURI: uri}
		r.ObjectRef.Resource = resource
		return r
	}
	group := of("get", "", "/apis/agents.x-k8s.io/v1beta1")
	closing := of("get", "validatingwebhookconfigurations", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/freshbind")
	closed := of("patch", "validatingwebhookconfigurations", closing.RequestURI)
	pool := of("get", "sandboxwarmpools", group.RequestURI+"/x")
	want := []request{pool, closed}
	if diff := cmp.Diff(want, unscheduled([]request{group, pool, closing, closed})); diff != "" {
		t.Errorf("unscheduled() (-want,+got):\n%s", diff)
	}
}

func took(tenths, deletes, others int) pair {
	return pair{
		rollout: time.Duration(tenths) * 100 * time.Millisecond, bare: time.Second,
		deletes: deletes, others: make([]request, others),
	}
}

// timed is one burst of 50 claims that were all ready after so many seconds.
func timed(t treatment, seconds float64, stale int, requests float64) *burst {
	b := &burst{release: "v1", treatment: t, claims: 50, stale: stale, rounds: 1, requests: []float64{requests}}
	for range b.claims {
		b.ready = append(b.ready, time.Duration(seconds*float64(time.Second)))
	}
	return b
}

// lacking is a burst of which one claim did not get ready.
func lacking(b *burst) *burst {
	b.ready = b.ready[1:]
	return b
}

func TestResults(t *testing.T) {
	cases := map[string]struct {
		result result
		faults []string
		line   string
	}{
		"rollouts within their bounds": {
			result: rollouts{members: 5, pairs: []pair{took(20, 5, 9), took(11, 5, 12), took(12, 5, 8)}},
			line:   "bench rollout: members=5 deletes=5 other=12 ratio=1.20",
		},
		"rollouts out of them": {
			result: rollouts{members: 5, pairs: []pair{took(14, 5, 13), took(15, 4, 8), took(12, 5, 8)}},
			faults: []string{
				"pair 1: 13 other requests, more than 12: 13   0",
				"pair 2: 4 deletes of 5 members",
				"time of a rollout, against a bare loop of its deletes: 1.40 x, more than 1.3",
			},
			line: "bench rollout: members=5 deletes=5 other=13 ratio=1.40",
		},
		"claims ready in time": {
			result: readiness{timed(unguarded, 1, 2, 40), timed(refusing, 3, 0, 100), timed(repairing, 1.5, 0, 65), timed(quiet, 1.25, 0, 30)},
			line:   "bench ready: v1/no-guard/50=1.00s v1/refusing/50=3.00s v1/repairing/50=1.50s v1/cold-no-update/50=1.25s",
		},
		"claims late, or with stale sandboxes": {
			result: readiness{timed(refusing, 3, 1, 100), timed(repairing, 2, 0, 66), lacking(timed(quiet, 1.25, 0, 30))},
			faults: []string{
				"v1, 50 claims, repairing: p50 above that of cold, no update: 0.75 s, more than 0.3",
				"v1, 50 claims, repairing: requests beyond cold, no update, against refusing: 0.51 x, more than 0.5",
				"v1, 50 claims, refusing: 1 stale bind",
				"v1, 50 claims, cold, no update: 49 of 50 claims got ready",
			},
			line: "bench ready: v1/refusing/50=3.00s v1/repairing/50=2.00s v1/cold-no-update/50=1.25s",
		},
		"pools within the budget": {
			result: replaced{pools: 3, deletes: 6, extremes: counts.Extremes{MostReplacing: 50}, took: 1500 * time.Millisecond},
			line:   "bench pools: pools=3 members=6 deletes=6 other=0 replacing=50 budget=50 seconds=1.5",
		},
		"pools out of it": {
			result: replaced{pools: 3, deletes: 7, extremes: counts.Extremes{MostReplacing: 51}, lost: 1, others: make([]request, 2)},
			faults: []string{
				"3 pools of 2: in replacement at once: 51.00 members, more than 50",
				"the recording lost events 1 times: what it shows proves nothing",
				"7 deletes of 6 members",
			},
			line: "bench pools: pools=3 members=6 deletes=7 other=2 replacing=51 budget=50 seconds=0.0",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.faults, tc.result.faults()); diff != "" {
				t.Errorf("faults() (-want,+got):\n%s", diff)
			}
			var out bytes.Buffer
			if held := conclude(&out, tc.result); held != (len(tc.faults) == 0) {
				t.Errorf("conclude() = %t with faults %q", held, tc.faults)
			}
			lines := bytes.Split(bytes.TrimSpace(out.Bytes()), []byte("\n"))
			if diff := cmp.Diff(tc.line, string(lines[len(lines)-1])); diff != "" {
				t.Errorf("last line (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestUpToDate(t *testing.T) {
	cases := map[string]struct {
		state, status string
		want          bool
	}{
		"full":             {"Complete", `{"updatedReadyReplicas":2}`, true},
		"complete, not so": {"Complete", `{"updatedReadyReplicas":1}`, false},
		"progressing":      {"Progressing", `{"updatedReadyReplicas":2}`, false},
		"says nothing":     {},
		"nonsense":         {"Complete", `{`, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pool := builders.MakePool("ns", "p").Annotation(settings.RolloutStateKey, tc.state).
				Annotation(settings.RolloutStatusKey, tc.status).Obj()
			if got := upToDate(pool, 2); got != tc.want {
				t.Errorf("upToDate() = %t, want %t", got, tc.want)
			}
		})
	}
}

func TestWhole(t *testing.T) {
	at := func(second int) time.Time { return time.Date(2026, 1, 1, 12, 0, second, 0, time.UTC) }
	cases := map[string]struct {
		instants []counts.Instant
		want     time.Time
	}{
		"from the beginning": {[]counts.Instant{{At: at(0), Claimable: 2}}, at(0)},
		"in the end": {
			[]counts.Instant{{At: at(0)}, {At: at(1), Claimable: 2}, {At: at(2), Claimable: 1}, {At: at(3), Claimable: 2}, {At: at(4), Claimable: 2}},
			at(3),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := whole(tc.instants, 2); !got.Equal(tc.want) {
				t.Errorf("whole() = %s, want %s", got, tc.want)
			}
		})
	}
}

func TestSpent(t *testing.T) {
	at := func(second int) time.Time { return time.Date(2026, 1, 1, 12, 0, second, 0, time.UTC) }
	got := spent([]counts.Instant{{At: at(0)}, {At: at(1), Replacing: 2}, {At: at(3), Replacing: 1}, {At: at(4)}, {At: at(9)}})
	if want := 5 * time.Second; got != want {
		t.Errorf("spent() = %s, want %s", got, want)
	}
}

func TestReadyPatch(t *testing.T) {
	patch, err := readyPatch()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"type":"Ready"`, `"status":"` + string(metav1.ConditionTrue) + `"`} {
		if !bytes.Contains(patch, []byte(want)) {
			t.Errorf("readyPatch() = %s, want %s in it", patch, want)
		}
	}
}

func TestUsage(t *testing.T) {
	used, err := parseStat("42 (fresh) bind) S 1 2 3 4 5 6 7 8 9 10 150 25 0 0 20\n")
	if err != nil || used != 1750*time.Millisecond {
		t.Errorf("CPU time %s, %v, want 1.75 s", used, err)
	}
	peak, err := parsePeak("Name:\tfreshbind\nVmPeak:\t 9 kB\nVmHWM:\t    2048 kB\n")
	if err != nil || peak != 2<<20 {
		t.Errorf("peak %v, %v, want 2 MiB", peak, err)
	}
	value, err := metric("# TYPE a gauge\na_b 1\na 1.5e+06\n", "a")
	if err != nil || value != 1.5e6 {
		t.Errorf("metric %v, %v, want 1.5e6", value, err)
	}
	for _, text := range []string{"", "no status", "1 (a) b"} {
		_, stat := parseStat(text)
		_, peak := parsePeak(text)
		_, value := metric(text, "a")
		if stat == nil || peak == nil || value == nil {
			t.Errorf("%q: errors %v, %v, %v, want all", text, stat, peak, value)
		}
	}
}
