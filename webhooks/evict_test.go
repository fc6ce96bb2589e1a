package webhooks

import (
	"context"
	"errors"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/freshbind/freshbind/internal/settings"
)

type evictions struct {
	member, enforcement string
	err                 error
}

func (e evictions) Replaced(ctx context.Context, namespace, pod string) (member, enforcement string, err error) {
	if _, bounded := ctx.Deadline(); !bounded || namespace != "ns" || pod != "p" {
		return "", "", errors.New("asked about something else, or for ever")
	}
	return e.member, e.enforcement, e.err
}

func TestEvict(t *testing.T) {
	away := errors.New("etcd is away")
	for name, tc := range map[string]struct {
		evictions evictions
		mode      settings.Mode
		modeErr   error
		allowed   bool
	}{
		"an idle member's":          {evictions{member: "m"}, settings.Enforce, nil, false},
		"where the pool says so":    {evictions{member: "m", enforcement: "enforce"}, settings.Audit, nil, false},
		"audited":                   {evictions{member: "m"}, settings.Audit, nil, true},
		"nobody's, or somebody's":   {evictions{}, settings.Enforce, nil, true},
		"undecided never waits":     {evictions{member: "m", err: away}, settings.Enforce, nil, true},
		"a mode that nobody knows":  {evictions{member: "m"}, settings.Enforce, away, true},
		"no mode is read of others": {evictions{}, settings.Enforce, away, true},
	} {
		t.Run(name, func(t *testing.T) {
			e := &Evict{Evictions: tc.evictions, Modes: modes(t, tc.mode, tc.modeErr), Timeout: time.Minute}
			resp := e.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: admissionv1.Create, Namespace: "ns", Name: "p", SubResource: "eviction",
			}})
			if resp.Allowed != tc.allowed {
				t.Errorf("allowed: %t, want %t", resp.Allowed, tc.allowed)
			}
			if !resp.Allowed && (resp.Result.Code != 429 || resp.Result.Reason != metav1.StatusReasonTooManyRequests) {
				t.Errorf("answered %d %s, want 429 TooManyRequests", resp.Result.Code, resp.Result.Reason)
			}
		})
	}
}
