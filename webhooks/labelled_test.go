package webhooks

import (
	"errors"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
)

// Where only a pool says enforce, policies find a sandbox by its label alone.
func TestNoClaimGetsASandboxThatNoPolicyHoldsFor(t *testing.T) {
	const waits, passes, denied = "waits", "passes", "denied"
	broken := errors.New("etcd is away")
	by := func(pool string, deleting bool) platform.Facts {
		return facts(func(f *platform.Facts) {
			f.Enforcement = pool
			f.Pod.Deleting = deleting
		})
	}
	bare := by("enforce", false)
	bare.Pod.ControllerUID, bare.Claim.Template, bare.Plain = "", "python", &freshness.Rendered{}
	start := builders.MakeColdStart(claim, template)
	inAPod := builders.MakeColdStart(claim, template).PodName("python-abc")
	for name, tc := range map[string]struct {
		facts     platform.Facts
		namespace settings.Mode
		readErr   error
		label     string
		create    *builders.Sandbox
		want      string
	}{
		"not labelled":                                  {facts: by("enforce", false), namespace: settings.Audit, want: waits},
		"labelled":                                      {facts: by("enforce", false), namespace: settings.Audit, label: "enforce", want: passes},
		"labelled otherwise":                            {facts: by("enforce", false), namespace: settings.Audit, label: "audit", want: waits},
		"a cold start":                                  {facts: by("enforce", false), namespace: settings.Audit, create: start, want: waits},
		"a cold start, labelled":                        {facts: by("enforce", false), namespace: settings.Audit, create: start, label: "enforce", want: passes},
		"a sandbox in a bare pod":                       {facts: bare, namespace: settings.Audit, create: inAPod, want: waits},
		"the namespace enforces":                        {facts: by("enforce", false), namespace: settings.Enforce, want: passes},
		"nobody enforces":                               {facts: by("", false), namespace: settings.Audit, want: passes},
		"nobody enforces, and nothing can be read":      {facts: by("", false), namespace: settings.Audit, readErr: broken, want: passes},
		"denied in any case":                            {facts: by("enforce", true), namespace: settings.Audit, want: denied},
		"the namespace cannot be read":                  {facts: by("enforce", false), namespace: settings.Enforce, readErr: broken, want: waits},
		"the namespace, audited so far, cannot be read": {facts: by("enforce", false), namespace: settings.Audit, readErr: broken, want: waits},
		"the namespace need not be read":                {facts: by("enforce", false), namespace: settings.Audit, readErr: broken, label: "enforce", want: passes},
		"the namespace enforces, labelled as well":      {facts: by("enforce", false), namespace: settings.Enforce, label: "enforce", want: passes},
	} {
		t.Run(name, func(t *testing.T) {
			g := guard(&fakePlatform{facts: tc.facts}, modes(t, tc.namespace, tc.readErr))
			old := builders.SandboxFrom(member).Label(settings.EnforcementKey, tc.label).Obj()
			req := request(t, admissionv1.Update, old, builders.Bound(old, claim, template).Obj())
			if tc.create != nil {
				req = request(t, admissionv1.Create, nil, builders.SandboxFrom(tc.create.Obj()).Label(settings.EnforcementKey, tc.label).Obj())
			}
			resp := g.Handle(t.Context(), req)
			got := denied
			switch {
			case resp.Allowed:
				got = passes
			case strings.Contains(resp.Result.Message, "could not decide"):
				got = waits
			}
			if got != tc.want {
				t.Errorf("it %s, want %s: %+v", got, tc.want, resp.Result)
			}
			if got == waits && tc.readErr != nil && !strings.Contains(resp.Result.Message, tc.readErr.Error()) {
				t.Errorf("it does not say why: %s", resp.Result.Message)
			}
			if wantCode := int32(500); got == waits && resp.Result.Code != wantCode {
				t.Errorf("code is %d, want %d", resp.Result.Code, wantCode)
			}
		})
	}
}
