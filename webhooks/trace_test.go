package webhooks

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
)

// Who looks at a slow or failed call in a trace sees what it was about, and what
// came of it.
func TestVerdictsInTraces(t *testing.T) {
	for name, tc := range map[string]struct {
		platform *fakePlatform
		want     map[string]string
	}{
		"denied": {
			platform: &fakePlatform{facts: facts(func(f *platform.Facts) { f.Pod.Deleting = true })},
			want: map[string]string{
				"freshbind.operation": "bind", "freshbind.verdict": "deny", "freshbind.reason": "PodTerminating", "freshbind.mode": "enforce",
				"k8s.namespace.name": "ns", "freshbind.sandbox": "python-abc", "freshbind.claim": "c1", "status": "Unset ",
			},
		},
		"undecided": {
			platform: &fakePlatform{err: errors.New("etcd is away")},
			want: map[string]string{
				"freshbind.operation": "bind", "freshbind.verdict": "error", "freshbind.reason": "Undecided", "freshbind.mode": "enforce",
				"k8s.namespace.name": "ns", "freshbind.sandbox": "python-abc", "freshbind.claim": "c1", "status": "Error etcd is away",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			seen := tracetest.NewSpanRecorder()
			ctx, span := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(seen)).Tracer("test").Start(t.Context(), "/bind")
			guardOn(t, tc.platform, settings.Enforce, &hints{}).Handle(ctx, bindRequest(t))
			span.End()
			got := map[string]string{}
			for _, s := range seen.Ended() {
				for _, a := range s.Attributes() {
					got[string(a.Key)] = a.Value.AsString()
				}
				got["status"] = s.Status().Code.String() + " " + s.Status().Description
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("span (-want,+got):\n%s", diff)
			}
		})
	}
}
