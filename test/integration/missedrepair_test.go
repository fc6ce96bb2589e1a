package integration

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
	"github.com/freshbind/freshbind/webhooks"
)

// What repairs stale cold starts fails open. A claim whose cold starts went past it is not
// left to its controller's backoff, which is minutes long after twenty refusals. From v0.5.6
// on the controller tries each 200 ms.
func TestAMissedRepairIsTriedAgain(t *testing.T) {
	w := releaseWorld(t, "v0.5.5")
	s := w.enforced(t)
	p := s.pool(scenario.Pool{Name: "none", Strategy: scenario.Recreate})
	refused := func() float64 {
		return w.metric(t, "freshbind_bind_verdicts_total", `operation="coldstart"`, `verdict="deny"`, `reason="StaleRevision"`)
	}
	s.hold(upstream.SandboxTemplates)
	often := s.often("refused", refused)
	ask := s.askNot(webhooks.StampHook.Name)
	s.image(p, "sandbox:v2")
	s.must(s.CreateClaims(t.Context(), p, "c1"))
	often()
	ask()
	s.must(s.WaitClaims(t.Context(), within, "c1"))
	s.waitEvent("c1", "ColdStartRepaired")
	s.fresh(1)
}

// often returns what waits until more has been counted, from now on, than a claim's controller
// gets to by itself: 17 tries in the ten minutes that this waits.
func (s *stage) often(what string, count func() float64) (wait func()) {
	s.t.Helper()
	before := count()
	return func() {
		s.t.Helper()
		s.eventually(what+" again and again", func(context.Context) (string, bool) {
			n := count() - before
			return fmt.Sprintf("%v %s", n, what), n >= 20
		})
	}
}

// askNot keeps the API server from asking a mutating webhook of Freshbind's in this
// namespace, until the returned function is called or the test ends.
func (s *stage) askNot(hook string) (ask func()) {
	s.t.Helper()
	configurations := s.kube().AdmissionregistrationV1().MutatingWebhookConfigurations()
	type conditions = []admissionregistrationv1.MatchCondition
	edit := func(ctx context.Context, edit func(conditions) conditions) {
		s.must(retry.RetryOnConflict(scenario.Conflicts, func() error {
			c, err := configurations.Get(ctx, "freshbind", metav1.GetOptions{})
			if err != nil {
				return err
			}
			for i := range c.Webhooks {
				if h := &c.Webhooks[i]; h.Name == hook {
					h.MatchConditions = edit(h.MatchConditions)
				}
			}
			_, err = configurations.Update(ctx, c, metav1.UpdateOptions{})
			return err
		}))
	}
	without := admissionregistrationv1.MatchCondition{Name: s.Name, Expression: "request.namespace != '" + s.Name + "'"}
	edit(s.t.Context(), func(all conditions) conditions { return append(all, without) })
	ask = sync.OnceFunc(func() {
		edit(context.WithoutCancel(s.t.Context()), func(all conditions) conditions {
			return slices.DeleteFunc(all, func(c admissionregistrationv1.MatchCondition) bool { return c == without })
		})
	})
	s.t.Cleanup(ask)
	// It would take off what nobody may say.
	probe := builders.MakeMember(builders.MakePool(s.Name, "probe").Obj(), builders.MakeTemplate(s.Name, "probe").Obj()).
		Name("probe").Owners().Annotation(settings.RepairedKey, "v1-a -> v1-b").Obj()
	s.eventually(hook+" is asked no more", func(ctx context.Context) (seen string, left bool) {
		s.w.inTime(s.t, func() {
			created, err := s.Resource(upstream.Sandboxes).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if seen, left = "asked", false; err != nil {
				seen = err.Error()
			} else {
				_, left = created.GetAnnotations()[settings.RepairedKey]
			}
		}, hook)
		return seen, left
	})
	return ask
}
