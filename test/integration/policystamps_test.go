package integration

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/exposition"
	"github.com/freshbind/freshbind/webhooks"
)

func TestAPodsStampIsPutBack(t *testing.T) {
	s := newPolicyStage(t, webhooks.Scope{})
	if !s.mutates(t) {
		t.Skip("NOT TESTED: this API server serves no mutating policies in admissionregistration.k8s.io/v1")
	}
	s.putsStampsBack(t)
}

// Before Kubernetes 1.36 a webhook does what the policy does.
func TestAPodsStampIsPutBackWithoutMutatingPolicies(t *testing.T) {
	s := withoutMutatingPolicies(t)
	s.guarded(t)
	s.putsStampsBack(t)
}

// mutates asks the API server whether it serves mutating policies.
func (s *policyStage) mutates(t *testing.T) bool {
	t.Helper()
	err := s.admin.List(t.Context(), &admissionregistrationv1.MutatingAdmissionPolicyList{})
	if err != nil && !meta.IsNoMatchError(err) {
		t.Fatalf("listing mutating policies: %v", err)
	}
	return err == nil
}

// withoutMutatingPolicies turns them off where there are any: an API server that does
// not know them refuses the flags.
func withoutMutatingPolicies(t *testing.T) *policyStage {
	t.Helper()
	s := newPolicyStage(t, webhooks.Scope{})
	if !s.mutates(t) {
		return s
	}
	w, err := startQuiet(context.WithoutCancel(t.Context()), "--runtime-config=admissionregistration.k8s.io/v1/mutatingadmissionpolicies=false,admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings=false",
		"--disable-admission-plugins=MutatingAdmissionPolicy,ServiceAccount")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Stop(); err != nil {
			t.Error(err)
		}
	})
	s = policyStageIn(t, w, webhooks.Scope{})
	if s.mutates(t) {
		t.Fatal("mutating policies are served, and the test is of an API server without them")
	}
	return s
}

func podStampPatch(stamp, more string) client.Patch {
	return client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"`+settings.StampKey+`":`+stamp+more+`}}}`))
}

func (s *policyStage) pod(t *testing.T, name string, labels map[string]string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.enforced, Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	if err := s.admin.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

// unpassed repeats a write that the API server has let pass because a hook had not
// answered in time.
func (s *policyStage) unpassed(t *testing.T, write func()) {
	t.Helper()
	passed := func() (writes float64) {
		metrics, err := exposition.OfAPIServer(t.Context(), s.w.Cluster.Config())
		if err != nil {
			t.Fatal(err)
		}
		for _, sample := range metrics["apiserver_admission_webhook_fail_open_count"] {
			if strings.HasSuffix(sample.Labels["name"], ".freshbind.dev") {
				writes += sample.Value
			}
		}
		return writes
	}
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, within, true, func(ctx context.Context) (bool, error) {
		before := passed()
		write()
		return before == passed(), nil
	})
	if err != nil {
		t.Fatalf("waiting for a write that the hooks are asked about: %v", err)
	}
}

// putsStampsBack changes the stamps of Pods in a namespace that enforces.
func (s *policyStage) putsStampsBack(t *testing.T) {
	t.Helper()
	stamped := s.pod(t, "stamped", map[string]string{settings.StampKey: "v1-a", "keep": "1"})
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, within, true, func(ctx context.Context) (bool, error) {
		tried := stamped.DeepCopy()
		err := s.admin.Patch(ctx, tried, podStampPatch(`"v1-b"`, ""), client.DryRunAll)
		return tried.Labels[settings.StampKey] == "v1-a", err
	})
	if err != nil {
		t.Fatalf("waiting until changes are undone: %v", err)
	}
	alone := s.pod(t, "alone", map[string]string{settings.StampKey: "v1-a"})
	plain := s.pod(t, "plain", map[string]string{"keep": "1"})
	wipe := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":null}}`))
	for name, tc := range map[string]struct {
		pod   *corev1.Pod
		patch client.Patch
		want  map[string]string
	}{
		"changed":     {stamped, podStampPatch(`"v1-b"`, ""), map[string]string{settings.StampKey: "v1-a", "keep": "1"}},
		"removed":     {stamped, podStampPatch(`null`, ""), map[string]string{settings.StampKey: "v1-a", "keep": "1"}},
		"beside":      {stamped, podStampPatch(`"v1-b"`, `,"more":"2"`), map[string]string{settings.StampKey: "v1-a", "keep": "1", "more": "2"}},
		"all removed": {alone, wipe, map[string]string{settings.StampKey: "v1-a"}},
		"added":       {plain, podStampPatch(`"v1-b"`, `,"more":"2"`), map[string]string{"keep": "1", "more": "2"}},
		"nothing":     {plain, podStampPatch(`null`, ""), map[string]string{"keep": "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			var pod *corev1.Pod
			s.unpassed(t, func() {
				pod = tc.pod.DeepCopy()
				if err := s.admin.Patch(t.Context(), pod, tc.patch, client.DryRunAll); err != nil {
					t.Fatalf("refused: %v", err)
				}
			})
			if diff := cmp.Diff(tc.want, pod.Labels); diff != "" {
				t.Errorf("labels (-want,+got):\n%s", diff)
			}
		})
	}
	s.unpassed(t, func() {
		if err := s.self.Patch(t.Context(), stamped, podStampPatch(`"v1-a"`, "")); err != nil {
			t.Fatal(err)
		}
		if err := s.admin.Patch(t.Context(), stamped, podStampPatch(`"v1-b"`, "")); err != nil {
			t.Fatalf("refused: %v", err)
		}
	})
	if stamped.Labels[settings.StampKey] != "v1-a" {
		t.Errorf("stored is the stamp %q, want v1-a", stamped.Labels[settings.StampKey])
	}
	if err := s.self.Patch(t.Context(), stamped, podStampPatch(`"v1-c"`, "")); err != nil || stamped.Labels[settings.StampKey] != "v1-c" {
		t.Errorf("Freshbind's own stamp is %q (error %v), want v1-c", stamped.Labels[settings.StampKey], err)
	}
}
