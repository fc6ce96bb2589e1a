package integration

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

// KEDA scales a pool to nothing in the middle of a rollout, and back.
func TestAPoolScaledInMidRollout(t *testing.T) {
	s := sharedWorld(t).enforced(t)
	p := s.rolling(8, settings.MaxUnavailableKey, "1", settings.ProgressDeadlineKey, "3h")
	was := s.state(p, "Complete", "")
	// Nothing becomes available from now on, so that the rollout is in its middle for as long as
	// it takes.
	s.annotate(p, settings.MinReadySecondsKey, "3600")
	s.image(p, "sandbox:v2")
	s.state(p, "Progressing", was)
	s.patch(upstream.SandboxWarmPools, p.Name, `{"spec":{"replicas":0}}`)
	now := s.state(p, "Complete", was)
	s.eventually("no member left", func(ctx context.Context) (string, bool) {
		members, err := s.Members(ctx, p.Name)
		s.must(err)
		return fmt.Sprint(len(members)), len(members) == 0
	})
	s.annotate(p, settings.MinReadySecondsKey, "0")
	s.patch(upstream.SandboxWarmPools, p.Name, `{"spec":{"replicas":5}}`)
	p.Replicas = 5
	s.full(p, "sandbox:v2")
	s.atRest(p)
	s.claim(p, scenario.Names("c", 5)...)
	if sum := s.fresh(5); sum.Warm != 5 {
		t.Errorf("%s, want 5 warm", sum)
	}
	if got := s.state(p, "Complete", was); got != now {
		t.Errorf("revision %s in the end, want %s", got, now)
	}
}

// A newer template in the middle of a rollout: what was on its way is stale, too,
// and nothing of it stays.
func TestANewerTemplateInMidRollout(t *testing.T) {
	s := sharedWorld(t).enforced(t)
	p := s.rolling(8, settings.MaxUnavailableKey, "25%", settings.ProgressDeadlineKey, "3h")
	first := s.state(p, "Complete", "")
	s.annotate(p, settings.MinReadySecondsKey, "3600")
	ready := s.followReady(p)
	s.image(p, "sandbox:v2")
	second := s.state(p, "Progressing", first)
	s.image(p, "sandbox:v3")
	s.annotate(p, settings.MinReadySecondsKey, "1")
	s.eventually("the third revision rolled out", func(context.Context) (string, bool) {
		annotations := s.get(upstream.SandboxWarmPools, p.Name).GetAnnotations()
		revision := annotations[settings.RolloutRevisionKey]
		return annotations[settings.RolloutStatusKey], annotations[settings.RolloutStateKey] == "Complete" && revision != first && revision != second
	})
	s.full(p, "sandbox:v3")
	if low := ready.lowest(); low < 6 {
		t.Errorf("only %d members were ready at one time, want 6 or more", low)
	}
}

// Members whose Pods somebody else holds back, as Kueue does, are left to him.
func TestGatedMembersAreLeftToWhoGatesThem(t *testing.T) {
	s := sharedWorld(t).enforced(t)
	p := s.rolling(4, settings.MaxUnavailableKey, "2")
	was := s.state(p, "Complete", "")
	s.patch(upstream.SandboxTemplates, p.Template, `{"spec":{"podTemplate":{"spec":{"schedulingGates":[{"name":"example.com/queue"}]}}}}`)
	gated := map[types.UID]string{}
	s.eventually("two members whose pods are gated", func(ctx context.Context) (string, bool) {
		clear(gated)
		members, err := s.Members(ctx, p.Name)
		s.must(err)
		for _, m := range members {
			pod, err := s.kube().CoreV1().Pods(s.Name).Get(ctx, m.Name, getOptions)
			if err == nil && len(pod.Spec.SchedulingGates) > 0 {
				gated[m.UID] = m.Name
			}
		}
		return fmt.Sprint(gated), len(gated) == 2
	})
	queued := s.state(p, "Progressing", was)
	// They are of no use any more, and not ready: others would go at once.
	s.patch(upstream.SandboxTemplates, p.Template, `{"spec":{"podTemplate":{"spec":{"schedulingGates":null}}}}`)
	s.image(p, "sandbox:v2")
	s.eventually("a plan for the newer template", func(context.Context) (string, bool) {
		revision := s.get(upstream.SandboxWarmPools, p.Name).GetAnnotations()[settings.RolloutRevisionKey]
		return revision, revision != was && revision != queued
	})
	for uid, name := range gated {
		sandbox, err := s.Resource(upstream.Sandboxes).Get(t.Context(), name, getOptions)
		if err != nil || sandbox.GetUID() != uid || sandbox.GetDeletionTimestamp() != nil {
			t.Errorf("gated member %s is gone: %v", name, err)
		}
	}
	for _, name := range gated {
		_, err := s.kube().CoreV1().Pods(s.Name).Patch(t.Context(), name, types.MergePatchType, []byte(`{"spec":{"schedulingGates":null}}`), metav1.PatchOptions{})
		s.must(err)
	}
	s.eventually("the newer template rolled out once the gates are lifted", func(context.Context) (string, bool) {
		annotations := s.get(upstream.SandboxWarmPools, p.Name).GetAnnotations()
		revision := annotations[settings.RolloutRevisionKey]
		return annotations[settings.RolloutStatusKey], annotations[settings.RolloutStateKey] == "Complete" && revision != was && revision != queued
	})
	s.full(p, "sandbox:v2")
}
