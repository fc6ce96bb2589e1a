package webhooks

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/freshbind/freshbind/internal/fair"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
)

// A mode that is only remembered is enough to know how to fail, not to write.
func TestNothingIsStampedWhileTheModeIsUnread(t *testing.T) {
	s := &Stamp{Revisions: fakeRevisions{}, Modes: modes(t, settings.Enforce, errors.New("etcd is away")), Timeout: time.Minute}
	var log strings.Builder
	ctx := logf.IntoContext(t.Context(), funcr.New(func(_, line string) { log.WriteString(line) }, funcr.Options{Verbosity: 2}))
	resp := s.Handle(ctx, request(t, admissionv1.Create, nil, member))
	if !resp.Allowed || len(resp.Patches) > 0 {
		t.Errorf("allowed %t, patches %v", resp.Allowed, resp.Patches)
	}
	if !strings.Contains(log.String(), "etcd is away") {
		t.Errorf("logged %q, want the reason why it has no stamp", &log)
	}
}

func TestWhatCannotBeDecodedIsRefused(t *testing.T) {
	for name, h := range map[string]admission.Handler{
		"stamp": &Stamp{Timeout: time.Minute}, "restamp": Restamp{Modes: modes(t, settings.Enforce, nil)}, "protect": &Protect{Timeout: time.Minute},
	} {
		req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
			Operation: admissionv1.Update, Object: runtime.RawExtension{Raw: []byte("{")}, OldObject: runtime.RawExtension{Raw: []byte("{")},
		}}
		if resp := h.Handle(t.Context(), req); resp.Allowed || resp.Result.Code != 400 {
			t.Errorf("%s: allowed %t, code %d, want a 400", name, resp.Allowed, resp.Result.Code)
		}
	}
}

// What is fresh for a bind passes in every mode; a cold start waits for the mode that is
// stored.
func TestAColdStartIsUndecidedWhileTheModeIsUnread(t *testing.T) {
	g := guard(&fakePlatform{facts: facts(func(*platform.Facts) {})}, modes(t, settings.Enforce, errors.New("etcd is away")))
	resp := g.Handle(t.Context(), request(t, admissionv1.Create, nil, builders.MakeColdStart(claim, template).Obj()))
	if resp.Allowed || resp.AuditAnnotations["verdict"] != "error" {
		t.Errorf("allowed %t, said %v", resp.Allowed, resp.AuditAnnotations)
	}
}

func TestWhatGetsNoTurnIsUndecided(t *testing.T) {
	g := guard(&fakePlatform{facts: facts(func(*platform.Facts) {})}, modes(t, settings.Enforce, nil))
	g.Turns = fair.NewTurns(1, 1)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if resp := g.Handle(gone, bindRequest(t)); resp.Allowed || resp.AuditAnnotations["verdict"] != "error" {
		t.Errorf("allowed %t, said %v", resp.Allowed, resp.AuditAnnotations)
	}
}
