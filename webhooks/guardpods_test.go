package webhooks

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
)

// A bind of a bare Pod is two writes, and what is refused is the Pod in both.
func TestGuardOfBarePods(t *testing.T) {
	pod := builders.MakePod(member).Owners(builders.ControllerRef(pool)).Label(agentsandbox.PodPoolLabel, "1").Obj()
	released := builders.PodFrom(pod).Owners().NoLabel(agentsandbox.PodPoolLabel).Obj()
	sandbox := builders.MakeColdStart(claim, template).PodName(pod.GetName()).Obj()
	inPod := func(f *platform.Facts) { f.Taken, f.Pod.ControllerUID, f.Claim.Template = released, "", "python" }
	broken := errors.New("etcd is away")

	type want struct {
		Allowed bool
		Refused []string
		Waiting []string
		Denied  []string
		// Released are the Pods that are to be looked at once more.
		Released []string
	}
	cases := map[string]struct {
		op       admissionv1.Operation
		old, obj *unstructured.Unstructured
		change   func(*platform.Facts)
		err      error
		mode     settings.Mode
		dryRun   bool
		user     string
		want     want
	}{
		"release": {
			op: admissionv1.Update, old: pod, obj: released, change: func(*platform.Facts) {},
			want: want{Allowed: true, Released: []string{"python-abc"}},
		},
		"release, audited": {
			op: admissionv1.Update, old: pod, obj: released, change: func(*platform.Facts) {}, mode: settings.Audit,
			want: want{Allowed: true},
		},
		"release, by a person": {
			op: admissionv1.Update, old: pod, obj: released, change: func(*platform.Facts) {}, user: "alice",
			want: want{Allowed: true},
		},
		"release, by a controller": {
			op: admissionv1.Update, old: pod, obj: released, change: func(*platform.Facts) {}, user: "system:serviceaccount:a:b",
			want: want{Allowed: true, Released: []string{"python-abc"}},
		},
		"release, dry run": {
			op: admissionv1.Update, old: pod, obj: released, change: func(*platform.Facts) {}, dryRun: true,
			want: want{Allowed: true},
		},
		"release, the pod's fault": {
			op: admissionv1.Update, old: pod, obj: released, change: func(f *platform.Facts) { f.Member.Deleting = true },
			want: want{Refused: []string{"python-abc its own"}, Denied: []string{"enforce  MemberTerminating python"}},
		},
		"release, undecided: nobody is told": {
			op: admissionv1.Update, old: pod, obj: released, err: broken, want: want{},
		},
		"sandbox in a pod": {
			op: admissionv1.Create, obj: sandbox, change: func(f *platform.Facts) { inPod(f); f.Plain = &freshness.Rendered{} }, want: want{Allowed: true},
		},
		"sandbox in a pod that is going": {
			op: admissionv1.Create, obj: sandbox, change: func(f *platform.Facts) { inPod(f); f.Pod.Deleting = true },
			want: want{Refused: []string{"python-abc its own"}, Denied: []string{"enforce c1 PodTerminating python"}},
		},
		"sandbox in a pod that is gone": {
			op: admissionv1.Create, obj: sandbox, change: func(f *platform.Facts) { inPod(f); f.Pod, f.Taken = nil, nil },
			want: want{Denied: []string{"enforce c1 PodFinished python"}},
		},
		"sandbox, undecided": {
			op: admissionv1.Create, obj: sandbox, err: broken, want: want{Waiting: []string{"ns/c1"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var h hints
			f := &fakePlatform{err: tc.err}
			if tc.change != nil {
				f.facts = facts(tc.change)
			}
			var let []string
			mode := settings.Enforce
			if tc.mode != "" {
				mode = tc.mode
			}
			g := &Guard{
				Platform: f, Modes: modes(t, mode, nil),
				Released: func(pod *unstructured.Unstructured) { let = append(let, pod.GetName()) },
				Metrics:  NewMetrics(prometheus.NewRegistry()), Observer: &h,
				Clock: testingclock.NewFakePassiveClock(time.Unix(0, 0)), Timeout: time.Minute,
			}
			req := request(t, tc.op, tc.old, tc.obj)
			req.DryRun, req.UserInfo.Username = &tc.dryRun, tc.user
			resp := g.Handle(t.Context(), req)
			got := want{Allowed: resp.Allowed, Refused: h.refused, Waiting: h.tryAgain, Denied: h.denied, Released: let}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Handle() (-want,+got):\n%s%v", diff, resp.Result)
			}
		})
	}
}

func TestNobodyWantsToKnowWhatIsReleased(t *testing.T) {
	pod := builders.MakePod(member).Owners(builders.ControllerRef(pool)).Label(agentsandbox.PodPoolLabel, "1").Obj()
	released := builders.PodFrom(pod).Owners().NoLabel(agentsandbox.PodPoolLabel).Obj()
	g := guardOn(t, &fakePlatform{facts: facts(func(*platform.Facts) {})}, settings.Enforce, &hints{})
	if resp := g.Handle(t.Context(), request(t, admissionv1.Update, pod, released)); !resp.Allowed {
		t.Errorf("a fresh release is denied: %v", resp.Result)
	}
}
