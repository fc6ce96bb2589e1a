package cli_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/advice"
	"github.com/freshbind/freshbind/internal/cli"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/clitest"
)

func TestOutcome(t *testing.T) {
	const hash = "v1-a071000000000000"
	at := func(state cli.State, updated, stale int, change ...func(*cli.Pool)) *cli.Pool {
		p := &cli.Pool{
			Name: "python", Template: "py", Replicas: 20, Ready: 18, Updated: updated, UpdatedReady: updated, Claimable: 18, Stale: stale,
			State: state, StalePolicy: advice.Replaced, MaxUnavailable: "25%", Deadline: 10 * time.Minute, Revision: hash, Number: 8,
			Object: pool(20).Obj(),
		}
		for _, c := range change {
			c(p)
		}
		return p
	}
	serving := func(p *cli.Pool) { p.Strategy, p.Admit = freshness.RollingUpdate, string(freshness.AdmitAny) }
	stale := func(f advice.StalePolicy) func(*cli.Pool) { return func(p *cli.Pool) { p.StalePolicy = f } }
	paused := func(p *cli.Pool) { p.Object = pool(20).Annotation(settings.PausedKey, "true").Obj() }
	cases := map[string]struct {
		pool    *cli.Pool
		trouble *cli.Trouble
		done    bool
		code    int
		want    string
	}{
		"progressing": {
			pool: at(cli.Progressing, 5, 13),
			want: `Waiting for rollout of pool "python" to revision 8 (v1-a0710000): 5 of 20 up to date, 18 claimable, 2 being replaced (max-unavailable 25%)...`,
		},
		"not told of": {
			pool: at(cli.Pending, 0, 20, stale(advice.Deleted)),
			want: `Waiting for rollout of pool "python" to revision 8 (v1-a0710000): 0 of 20 up to date, 18 claimable, 2 being replaced; the controller has not reported on it yet...`,
		},
		"in trouble": {
			pool: at(cli.Progressing, 5, 15), trouble: &cli.Trouble{Member: "python-9qz", For: 190 * time.Second, Why: "ImagePullBackOff (container c)"},
			want: `Waiting for rollout of pool "python": 5 of 20 up to date: newest member python-9qz is not ready for 3m10s: ImagePullBackOff (container c)...`,
		},
		"complete": {
			pool: at(cli.Complete, 20, 0), done: true,
			want: `pool "python" successfully rolled out: 20 of 20 up to date, revision 8 (v1-a0710000)`,
		},
		"complete, and claims took some": {
			pool: at(cli.Complete, 17, 0), done: true,
			want: `pool "python" successfully rolled out: 17 of 20 up to date, revision 8 (v1-a0710000)`,
		},
		"complete though paused": {
			pool: at(cli.Complete, 20, 0, paused), done: true,
			want: `pool "python" successfully rolled out: 20 of 20 up to date, revision 8 (v1-a0710000)`,
		},
		"complete though it was told that it failed": {
			pool: at(cli.Failed, 20, 0), done: true,
			want: `pool "python" successfully rolled out: 20 of 20 up to date, revision 8 (v1-a0710000)`,
		},
		"failed": {
			pool: at(cli.Failed, 5, 15, serving), done: true, code: cli.ExitFailed,
			want: `pool "python" exceeded its progress deadline (10m): 5 of 20 up to date; 15 older members keep serving. Undo: kubectl freshbind rollout undo template/py`,
		},
		"failed, before older ones were admitted": {
			pool: at(cli.Failed, 5, 15, serving, func(p *cli.Pool) { p.Admit = string(freshness.AdmitFresh) }), done: true, code: cli.ExitFailed,
			want: `pool "python" exceeded its progress deadline (10m): 5 of 20 up to date; claims do not get the 15 older members. Undo: kubectl freshbind rollout undo template/py`,
		},
		"failed under Recreate": {
			pool: at(cli.Failed, 5, 15, func(p *cli.Pool) { p.Strategy = freshness.Recreate }), done: true, code: cli.ExitFailed,
			want: `pool "python" exceeded its progress deadline (10m): 5 of 20 up to date; claims do not get the 15 older members. Undo: kubectl freshbind rollout undo template/py`,
		},
		"failed, and it refers to a template of another kind": {
			pool: at(cli.Failed, 5, 15, serving, func(p *cli.Pool) { p.TemplateKind = "SandboxTemplate" }), done: true, code: cli.ExitFailed,
			want: `pool "python" exceeded its progress deadline (10m): 5 of 20 up to date; 15 older members keep serving. Undo: kubectl freshbind rollout undo pool/python`,
		},
		"paused": {
			pool: at(cli.Progressing, 5, 15, paused), done: true, code: cli.ExitPaused,
			want: `pool "python" is paused: 5 of 20 up to date. Resume: kubectl freshbind rollout resume pool/python`,
		},
		"kept by strategy": {
			pool: at(cli.StaleByStrategy, 5, 1, stale(advice.Kept)), done: true, code: cli.ExitFailed,
			want: `pool "python" will not complete by itself: 5 of 20 up to date; 1 members are not: OnReplenish keeps serving it`,
		},
		"filled up under OnReplenish": {
			pool: at(cli.Filling, 18, 0, stale(advice.Kept)),
			want: `Waiting for rollout of pool "python" to revision 8 (v1-a0710000): 18 of 20 up to date, 18 claimable, 2 being replaced...`,
		},
		"kept in audit": {
			pool: at(cli.StaleInAudit, 5, 15, stale(advice.KeptInAudit)), done: true, code: cli.ExitFailed,
			want: `pool "python" will not complete by itself: 5 of 20 up to date; 15 members are not: mode audit keeps serving them`,
		},
		"no template": {
			pool: at(cli.TemplateGone, 0, 0, func(p *cli.Pool) { p.Message = "template py does not exist" }),
			want: `Waiting for rollout of pool "python": template py does not exist...`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := tc.pool.Outcome(tc.trouble, "kubectl freshbind")
			if got.Done != tc.done || got.Code != tc.code {
				t.Errorf("done %v with code %d, want %v with %d", got.Done, got.Code, tc.done, tc.code)
			}
			if diff := cmp.Diff(tc.want, got.Text); diff != "" {
				t.Errorf("text (-want,+got):\n%s", diff)
			}
		})
	}
}

// A text that only counts seconds is no news.
func TestTheKeyOfAnOutcomeDoesNotCountSeconds(t *testing.T) {
	p := &cli.Pool{Name: "python", Replicas: 1, Stale: 1, StalePolicy: advice.Deleted, State: cli.Progressing, Object: pool(1).Obj()}
	a := p.Outcome(&cli.Trouble{Member: "m", For: time.Minute, Why: "x"}, "freshbind")
	b := p.Outcome(&cli.Trouble{Member: "m", For: time.Hour, Why: "x"}, "freshbind")
	other := p.Outcome(&cli.Trouble{Member: "m", For: time.Minute, Why: "y"}, "freshbind")
	if a.Key != b.Key || a.Text == b.Text || a.Key == other.Key {
		t.Errorf("keys %q, %q and %q", a.Key, b.Key, other.Key)
	}
}

func TestTroubleOf(t *testing.T) {
	v1 := version("v1")
	p := pool(2)
	young := one(p, v1, "python-young").Ready(false).Created(clitest.Now.Add(-3 * time.Second))
	old := one(p, v1, "python-old").Ready(false)
	podOf := func(set ...any) client.Object {
		b := builders.MakePod(old.Obj()).Stored("n1")
		if len(set) > 0 {
			b.Set(set[0], "status")
		}
		return b.Obj()
	}
	waiting := map[string]any{"containerStatuses": []any{map[string]any{
		"name": "c", "state": map[string]any{"waiting": map[string]any{"reason": "ImagePullBackOff"}},
	}}}
	unscheduled := map[string]any{"phase": "Pending", "conditions": []any{map[string]any{
		"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available",
	}}}
	cases := map[string]struct {
		objs []client.Object
		want *cli.Trouble
	}{
		"all ready":   {objs: []client.Object{one(p, v1, "python-a").Ready(true).Obj()}},
		"too young":   {objs: []client.Object{young.Obj()}},
		"no pod":      {objs: []client.Object{old.Obj()}, want: &cli.Trouble{Member: "python-old", For: time.Minute, Why: "it has no pod yet"}},
		"no image":    {objs: []client.Object{old.Obj(), podOf(waiting)}, want: &cli.Trouble{Member: "python-old", For: time.Minute, Why: "ImagePullBackOff (container c)"}},
		"no room":     {objs: []client.Object{old.Obj(), podOf(unscheduled)}, want: &cli.Trouble{Member: "python-old", For: time.Minute, Why: "Unschedulable: 0/3 nodes are available"}},
		"nothing odd": {objs: []client.Object{old.Obj(), podOf()}, want: &cli.Trouble{Member: "python-old", For: time.Minute, Why: "its pod is Running"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, append([]client.Object{v1, p.Obj(), namespace("enforce")}, tc.objs...)...)
			store, err := c.Load(t.Context(), ns)
			if err != nil {
				t.Fatal(err)
			}
			found, err := c.Judge(store).Pools(t.Context(), cli.Selection{})
			if err != nil {
				t.Fatal(err)
			}
			got, err := c.TroubleOf(t.Context(), store, &found[0])
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("trouble (-want,+got):\n%s", diff)
			}
		})
	}
}
