package cli_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/freshbind/freshbind/internal/cli"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/clitest"
)

// row is what a test says of a pool.
type row struct {
	Mode, Strategy                                                                     string
	Ready, Updated, UpdatedReady, Claimable, Stale, Unknown, Unusable, Hidden, Leaving int
	Number                                                                             int64
	Words                                                                              string
}

func rowOf(p cli.Pool) row {
	return row{
		string(p.Mode), string(p.Strategy), p.Ready, p.Updated, p.UpdatedReady, p.Claimable, p.Stale, p.Unknown, p.Unusable, p.Hidden, p.Leaving,
		p.Number, p.Words(),
	}
}

func TestPools(t *testing.T) {
	v1, v2, foreign := version("v1"), version("v2"), version("elsewhere")
	begin := clitest.Now.Add(-time.Hour)
	recorded := []client.Object{clitest.Revision(t, v1, 1, begin), clitest.Revision(t, v2, 2, begin.Add(time.Minute))}
	rolling := func() *builders.Pool { return pool(4).Annotation("freshbind.dev/rollout-strategy", "RollingUpdate") }
	status := platform.RolloutStatus{UpdateRevision: clitest.Hash(t, v2), ObservedTemplateGeneration: 1, Conditions: []metav1.Condition{
		{Type: platform.ConditionProgressing, LastTransitionTime: metav1.NewTime(begin), Message: "2 of 4 members to go"},
	}}
	cases := map[string]struct {
		pool    *builders.Pool
		mode    string
		members func(p *builders.Pool) []client.Object
		want    row
	}{
		"audit, OnReplenish": {
			pool: pool(3), mode: "audit",
			members: func(p *builders.Pool) []client.Object { return append(idle(p, v1, "a", 2), idle(p, v2, "b", 1)...) },
			want:    row{Mode: "audit", Strategy: "OnReplenish", Ready: 3, Updated: 1, UpdatedReady: 1, Claimable: 3, Stale: 2, Number: 2, Words: "Stale by strategy"},
		},
		"audit, RollingUpdate": {
			pool: rolling(), mode: "audit",
			members: func(p *builders.Pool) []client.Object { return idle(p, v1, "a", 4) },
			want:    row{Mode: "audit", Strategy: "RollingUpdate", Ready: 4, Claimable: 4, Stale: 4, Number: 2, Words: "Stale (mode audit)"},
		},
		"no mode is the default": {
			pool:    pool(1),
			members: func(p *builders.Pool) []client.Object { return idle(p, v2, "a", 1) },
			want:    row{Mode: "audit", Strategy: "OnReplenish", Ready: 1, Updated: 1, UpdatedReady: 1, Claimable: 1, Number: 2, Words: "Complete"},
		},
		"a pool tightens its namespace": {
			pool: rolling().Annotation("freshbind.dev/enforcement", "enforce"), mode: "audit",
			members: func(p *builders.Pool) []client.Object { return idle(p, v1, "a", 4) },
			want:    row{Mode: "enforce", Strategy: "RollingUpdate", Ready: 4, Stale: 4, Number: 2, Words: "Pending 0/4"},
		},
		"the controller tells": {
			pool: published(t, rolling().Annotation(settings.AdmitKey, "any"), "Progressing", "MembersUpdating", status), mode: "enforce",
			members: func(p *builders.Pool) []client.Object { return append(idle(p, v1, "a", 2), idle(p, v2, "b", 2)...) },
			want:    row{Mode: "enforce", Strategy: "RollingUpdate", Ready: 4, Updated: 2, UpdatedReady: 2, Claimable: 4, Stale: 2, Number: 2, Words: "Progressing 2/4"},
		},
		"failed": {
			pool: published(t, rolling(), "Failed", "ProgressDeadlineExceeded", status), mode: "enforce",
			members: func(p *builders.Pool) []client.Object { return idle(p, v1, "a", 4) },
			want:    row{Mode: "enforce", Strategy: "RollingUpdate", Ready: 4, Stale: 4, Number: 2, Words: "Failed (deadline)"},
		},
		"told of an older revision": {
			pool: published(t, rolling(), "Complete", "MembersUpToDate", platform.RolloutStatus{UpdateRevision: "v1-00", ObservedTemplateGeneration: 1}), mode: "enforce",
			members: func(p *builders.Pool) []client.Object { return idle(p, v1, "a", 4) },
			want:    row{Mode: "enforce", Strategy: "RollingUpdate", Ready: 4, Stale: 4, Number: 2, Words: "Pending 0/4"},
		},
		"told of another generation": {
			pool: published(t, rolling(), "Complete", "MembersUpToDate", platform.RolloutStatus{UpdateRevision: clitest.Hash(t, v2), ObservedTemplateGeneration: 7}), mode: "enforce",
			members: func(p *builders.Pool) []client.Object { return idle(p, v1, "a", 4) },
			want:    row{Mode: "enforce", Strategy: "RollingUpdate", Ready: 4, Stale: 4, Number: 2, Words: "Pending 0/4"},
		},
		"told complete a moment ago": {
			pool: published(t, rolling(), "Complete", "MembersUpToDate", status), mode: "enforce",
			members: func(p *builders.Pool) []client.Object { return idle(p, v1, "a", 4) },
			want:    row{Mode: "enforce", Strategy: "RollingUpdate", Ready: 4, Stale: 4, Number: 2, Words: "Pending 0/4"},
		},
		"told complete, and claims took some": {
			pool: published(t, rolling(), "Complete", "MembersUpToDate", status), mode: "enforce",
			members: func(p *builders.Pool) []client.Object { return idle(p, v2, "a", 1) },
			want:    row{Mode: "enforce", Strategy: "RollingUpdate", Ready: 1, Updated: 1, UpdatedReady: 1, Claimable: 1, Number: 2, Words: "Complete"},
		},
		"what was told does not count in audit": {
			pool: published(t, rolling(), "Progressing", "MembersUpdating", status), mode: "audit",
			members: func(p *builders.Pool) []client.Object { return idle(p, v1, "a", 4) },
			want:    row{Mode: "audit", Strategy: "RollingUpdate", Ready: 4, Claimable: 4, Stale: 4, Number: 2, Words: "Stale (mode audit)"},
		},
		"suspended": {
			pool: published(t, rolling().Annotation(settings.AttributionKey, clitest.Hash(t, v2)), "Complete", "AttributionSuspended", status), mode: "enforce",
			members: func(p *builders.Pool) []client.Object { return idle(p, foreign, "a", 4) },
			want:    row{Mode: "enforce", Strategy: "RollingUpdate", Ready: 4, Claimable: 4, Unknown: 4, Number: 2, Words: "Suspended (unknown members)"},
		},
		"told of a time before the restart": {
			pool: published(t, rolling().Annotation("freshbind.dev/restarted-at", "2026-01-31T12:00:00Z"), "Complete", "MembersUpToDate", status), mode: "enforce",
			members: func(p *builders.Pool) []client.Object { return idle(p, v2, "a", 4) },
			want:    row{Mode: "enforce", Strategy: "RollingUpdate", Ready: 4, Stale: 4, Number: 2, Words: "Pending 0/4"},
		},
		"members that claims do not get": {
			pool: pool(5).Annotation("freshbind.dev/rollout-strategy", "Recreate"), mode: "enforce",
			members: func(p *builders.Pool) []client.Object {
				return []client.Object{
					one(p, v2, "python-a").Ready(true).NoLabel(builders.LabelTemplateRef).Obj(),
					one(p, v2, "python-b").Ready(false).Obj(),
					one(p, v2, "python-c").Ready(true).Deleting(clitest.Now).Set([]string{"test/keep"}, "metadata", "finalizers").Obj(),
					one(p, foreign, "python-d").Ready(true).Obj(),
					one(p, v2, "python-e").Ready(true).Annotation(settings.BoundToKey, "uid").Obj(),
				}
			},
			want: row{Mode: "enforce", Strategy: "Recreate", Ready: 3, Updated: 2, UpdatedReady: 1, Unknown: 1, Unusable: 1, Hidden: 1, Leaving: 1, Number: 2, Words: "Pending 2/5"},
		},
		"of another template": {
			pool: pool(1).Annotation("freshbind.dev/rollout-strategy", "Recreate"), mode: "enforce",
			members: func(p *builders.Pool) []client.Object {
				return []client.Object{one(p, v2, "python-a").Ready(true).Annotation(builders.AnnotationTemplate, "other").Obj()}
			},
			want: row{Mode: "enforce", Strategy: "Recreate", Ready: 1, Stale: 1, Number: 2, Words: "Pending 0/1"},
		},
		"too young to be available": {
			pool: pool(1).Annotation("freshbind.dev/min-ready-seconds", "3600"), mode: "enforce",
			members: func(p *builders.Pool) []client.Object { return idle(p, v2, "a", 1) },
			want:    row{Mode: "enforce", Strategy: "OnReplenish", Ready: 1, Updated: 1, Claimable: 1, Number: 2, Words: "Filling 1/1"},
		},
		"a template that is gone": {
			pool: pool(1).Template("gone"), mode: "enforce",
			members: func(p *builders.Pool) []client.Object { return nil },
			want:    row{Mode: "enforce", Strategy: "OnReplenish", Words: "Template is gone"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objs := append([]client.Object{v2, tc.pool.Obj(), namespace(tc.mode)}, recorded...)
			found := judge(t, newCluster(t, append(objs, tc.members(tc.pool)...)...))
			if len(found) != 1 {
				t.Fatalf("%d pools", len(found))
			}
			if diff := cmp.Diff(tc.want, rowOf(found[0])); diff != "" {
				t.Errorf("pool (-want,+got):\n%s", diff)
			}
		})
	}
}

// Whoever may not read namespaces sees that the mode is not known; what the
// controller wrote says that it acts here.
func TestModeThatMayNotBeRead(t *testing.T) {
	v1, v2 := version("v1"), version("v2")
	p := published(t, pool(1).Annotation("freshbind.dev/rollout-strategy", "Recreate"), "Progressing", "MembersUpdating",
		platform.RolloutStatus{UpdateRevision: clitest.Hash(t, v2), ObservedTemplateGeneration: 1})
	objs := append([]client.Object{v2, p.Obj(), clitest.Revision(t, v1, 1, clitest.Now)}, idle(p, v1, "a", 1)...)
	c := clitest.New(t, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if _, is := obj.(*corev1.Namespace); is {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, key.Name, nil)
			}
			return c.Get(ctx, key, obj, opts...)
		},
	}, objs...)
	want := row{Mode: "unknown", Strategy: "Recreate", Ready: 1, Stale: 1, Words: "Progressing 0/1"}
	if diff := cmp.Diff(want, rowOf(judge(t, c)[0])); diff != "" {
		t.Errorf("pool (-want,+got):\n%s", diff)
	}
}

func TestATableOfPools(t *testing.T) {
	v1, v2 := version("v1"), version("v2")
	p := published(t, pool(2), "Progressing", "StaleByStrategy", platform.RolloutStatus{
		UpdateRevision: clitest.Hash(t, v2), ObservedTemplateGeneration: 1, StartTime: metav1.NewTime(clitest.Now.Add(-48 * time.Hour)),
		Conditions: []metav1.Condition{{Type: platform.ConditionProgressing, LastTransitionTime: metav1.NewTime(clitest.Now.Add(-72 * time.Hour))}},
	})
	objs := append([]client.Object{v2, p.Obj(), namespace("enforce"), clitest.Revision(t, v1, 1, clitest.Now)}, idle(p, v1, "a", 1)...)
	c := newCluster(t, append(objs, idle(p, v2, "b", 1)...)...)
	found := judge(t, c)
	short := cli.Short(clitest.Hash(t, v2))
	cases := map[string]struct {
		output cli.Output
		want   string
	}{
		"plain": {want: `NAMESPACE   POOL     STRATEGY      MODE      READY   UP-TO-DATE   CLAIMABLE   STALE   UNKNOWN   REVISION      STATE               SINCE
prod        python   OnReplenish   enforce   2/2     1/2          2           1       0         ` + short + `   Stale by strategy   2d
`},
		"no headers": {output: cli.Output{NoHeaders: true}, want: `prod   python   OnReplenish   enforce   2/2   1/2   2   1   0   ` + short + `   Stale by strategy   2d
`},
		"name":   {output: cli.Output{Format: cli.Name}, want: "sandboxwarmpool.extensions.agents.x-k8s.io/python\n"},
		"colour": {output: cli.Output{NoHeaders: true, Colour: true}, want: `prod   python   OnReplenish   enforce   2/2   1/2   2   1   0   ` + short + "   \x1b[33mStale by strategy\x1b[0m   2d\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			columns := cli.PoolColumns(true, tc.output.Format == cli.Wide, c.Now)
			if err := cli.NewPrinter(tc.output, "PoolStatus", cli.PoolName, columns).Print(&b, found); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, b.String()); diff != "" {
				t.Errorf("Print() (-want,+got):\n%s", diff)
			}
		})
	}
}

// A member is what its Pod runs; without the right to list Pods it is what its
// Sandbox says.
func TestMembersByTheirPods(t *testing.T) {
	v1, v2 := version("v1"), version("v2")
	p := pool(2)
	older := one(p, v1, "python-a").Obj()
	member := one(p, v2, "python-a").Obj()
	pod := builders.MakePod(older).Owners(builders.ControllerRef(member)).Generation(1).Obj()
	debugged := builders.MakePod(one(p, v2, "python-b").Obj()).Set([]any{map[string]any{"name": "d", "image": "b"}}, "spec", "ephemeralContainers").Obj()
	objs := []client.Object{member, one(p, v2, "python-b").Obj(), pod, debugged, v2, p.Obj(), namespace("enforce"), clitest.Revision(t, v1, 1, clitest.Now)}
	noPods := interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if list.GetObjectKind().GroupVersionKind().Kind == "PodList" {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("not yours"))
		}
		return c.List(ctx, list, opts...)
	}}
	for name, tc := range map[string]struct {
		funcs             interceptor.Funcs
		unknown, unusable int
	}{
		"all that it may read": {interceptor.Funcs{}, 1, 1},
		"no Pods":              {noPods, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := clitest.New(t, tc.funcs, objs...)
			if got := judge(t, c)[0]; got.Stale+got.Unknown != tc.unknown || got.Unusable != tc.unusable {
				t.Errorf("%d stale or unknown, %d unusable, want %d and %d", got.Stale+got.Unknown, got.Unusable, tc.unknown, tc.unusable)
			}
		})
	}
}
