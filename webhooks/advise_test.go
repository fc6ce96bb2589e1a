package webhooks

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/freshbind/freshbind/internal/advice"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/test/builders"
)

// fakeAdviser reads inputs as agent-sandbox's does, and predicts what it is
// given.
type fakeAdviser struct {
	agentsandbox.Adviser
	effect advice.Effect
	err    error
	asked  bool
}

func (f *fakeAdviser) Predict(ctx context.Context, _, _ *unstructured.Unstructured) (advice.Effect, error) {
	f.asked = true
	if _, bounded := ctx.Deadline(); !bounded {
		return nil, errors.New("advice has no deadline")
	}
	return f.effect, f.err
}

func namespaceWith(mode string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("v1")
	u.SetKind("Namespace")
	u.SetName("ns")
	u.SetLabels(map[string]string{"freshbind.dev/enforcement": mode})
	return u
}

func TestAdvise(t *testing.T) {
	stale := advice.TemplateChange{Pools: []advice.PoolChange{{Name: "python", Rollout: advice.Rollout{Spec: "Recreate"}, BecomeStale: 3}}}
	const staleLine = "3 idle members become stale (python 3: Recreate deletes them)"
	misspelt := builders.TemplateFrom(template).Annotation("freshbind.dev/strategy", "x").Obj()
	rolling := builders.PoolFrom(pool).Annotation("freshbind.dev/rollout-strategy", "Rolling").Obj()
	onPod := builders.TemplateFrom(template).Set("x", "spec", "podTemplate", "metadata", "labels", "freshbind.dev/a").Obj()

	type want struct {
		Allowed  bool
		Code     int32
		Warnings []string
		Fields   []string
		Asked    bool
	}
	cases := map[string]struct {
		op       admissionv1.Operation
		old, obj *unstructured.Unstructured
		effect   advice.Effect
		err      error
		want     want
	}{
		"nothing to tell":        {op: admissionv1.Update, old: template, obj: template, want: want{Allowed: true, Code: 200, Asked: true}},
		"an effect that is calm": {op: admissionv1.Update, old: template, obj: template, effect: advice.TemplateChange{}, want: want{Allowed: true, Code: 200, Asked: true}},
		"a warning":              {op: admissionv1.Update, old: template, obj: template, effect: stale, want: want{Allowed: true, Code: 200, Asked: true, Warnings: []string{staleLine}}},
		"an input that is none":  {op: admissionv1.Update, old: template, obj: misspelt, effect: stale, want: want{Allowed: true, Code: 200, Asked: true, Warnings: []string{advice.Ignored(advice.Inputs{}, (&agentsandbox.Adviser{}).Inputs(misspelt))[0], staleLine}}},
		"could not be told":      {op: admissionv1.Create, obj: claim, effect: stale, err: errors.New("etcd is away"), want: want{Allowed: true, Code: 200, Asked: true}},
		"a bad input":            {op: admissionv1.Create, obj: rolling, effect: stale, want: want{Code: 422, Fields: []string{"metadata.annotations[freshbind.dev/rollout-strategy]"}}},
		"a bad input, as before": {op: admissionv1.Update, old: rolling, obj: rolling, want: want{Allowed: true, Code: 200, Asked: true}},
		"a key of ours on pods":  {op: admissionv1.Update, old: template, obj: onPod, want: want{Code: 422, Fields: []string{"spec.podTemplate.metadata.labels[freshbind.dev/a]"}}},
		"a namespace":            {op: admissionv1.Update, old: namespaceWith("audit"), obj: namespaceWith("enforce"), want: want{Allowed: true, Code: 200, Asked: true}},
		"a namespace, bad mode":  {op: admissionv1.Create, obj: namespaceWith("on"), want: want{Code: 422, Fields: []string{"metadata.labels[freshbind.dev/enforcement]"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			adviser := &fakeAdviser{effect: tc.effect, err: tc.err}
			req := request(t, tc.op, tc.old, tc.obj)
			req.DryRun = ptr.To(true)
			resp := (&Advise{Adviser: adviser, Timeout: time.Minute}).Handle(t.Context(), req)
			got := want{Allowed: resp.Allowed, Code: resp.Result.Code, Warnings: resp.Warnings, Asked: adviser.asked}
			if !resp.Allowed {
				for _, c := range resp.Result.Details.Causes {
					got.Fields = append(got.Fields, c.Field)
					if !strings.Contains(resp.Result.Message, c.Field) {
						t.Errorf("message %q does not name %s", resp.Result.Message, c.Field)
					}
				}
				if resp.Result.Reason != metav1.StatusReasonInvalid {
					t.Errorf("reason is %s", resp.Result.Reason)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Handle() (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestAdviseRefusesWhatItCannotDecode(t *testing.T) {
	req := request(t, admissionv1.Update, template, template)
	req.OldObject.Raw = nil
	if resp := (&Advise{Adviser: &fakeAdviser{}}).Handle(t.Context(), req); resp.Allowed || resp.Result.Code != 400 {
		t.Errorf("Handle() = allowed %t, code %d, want a 400", resp.Allowed, resp.Result.Code)
	}
}
