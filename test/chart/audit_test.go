package chart

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
	"github.com/freshbind/freshbind/webhooks"
)

const enforcePool = `{"metadata":{"annotations":{"freshbind.dev/enforcement":"enforce"}}}`

// While Freshbind is stopped, claims get their sandboxes where nobody says enforce.
// Where somebody does, no bind and no cold start passes, whichever way it was said.
func TestWhileFreshbindIsStoppedWritesWaitWhereEnforceIsSaid(t *testing.T) {
	audit := map[string]string{"freshbind.dev/enforcement": "audit"}
	prod := map[string]string{"tier": "prod"}
	for name, tc := range map[string]struct {
		values []string
		// waits and goesOn are the labels of namespaces; byPool has a pool that enforces.
		waits, goesOn map[string]map[string]string
		byPool        bool
	}{
		"by label, floor and pool": {
			set("config.floors[0].namespaceSelector.matchLabels.tier=prod", "config.floors[0].minimumEnforcement=enforce"),
			map[string]map[string]string{"label": scenario.Enforce(), "floor": prod}, map[string]map[string]string{"nothing": nil, "audit": audit}, true,
		},
		"by default": {
			set("config.defaults.enforcement=enforce"),
			map[string]map[string]string{"nothing": nil}, map[string]map[string]string{"audit": audit}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := sharedWorld(t)
			w.install(t, tc.values...)
			waits, goesOn := map[string]*binds{}, map[string]*binds{}
			for what, labels := range tc.waits {
				waits[what] = w.bindsIn(t, labels)
			}
			for what, labels := range tc.goesOn {
				goesOn[what] = w.bindsIn(t, labels)
			}
			if tc.byPool {
				waits["pool"] = w.bindsIn(t, audit)
				w.annotate(t, waits["pool"].ns, enforcePool)
				w.closed(t, waits["pool"].ns.Name)
			}
			w.stop(t)
			for what, b := range waits {
				w.eventually(t, "binds and cold starts wait by "+what, func(ctx context.Context) (string, bool) {
					bind, cold := b.try(ctx, string(uuid.NewUUID())), b.coldStart(ctx)
					return fmt.Sprintf("bind: %v; cold start: %v", bind, cold), unanswered(bind) && unanswered(cold)
				})
			}
			var names []string
			for what, b := range goesOn {
				p := scenario.Pool{Name: "python", Template: "python"}
				w.must(t, b.ns.CreateClaims(t.Context(), p, "c1", "c2"))
				w.must(t, b.ns.WaitClaims(t.Context(), within, "c1", "c2"))
				names = append(names, what)
			}
			t.Logf("claims went on in %v", names)
			w.run(t)
			for _, b := range waits {
				p := scenario.Pool{Name: "python", Template: "python"}
				w.must(t, b.ns.CreateClaims(t.Context(), p, "c1"))
				w.must(t, b.ns.WaitClaims(t.Context(), within, "c1"))
			}
			if tc.byPool {
				w.annotate(t, waits["pool"].ns, strings.Replace(enforcePool, `"enforce"`, "null", 1))
				w.closed(t)
			}
		})
	}
}

// unanswered: the write failed because nobody answered.
func unanswered(err error) bool {
	return err != nil && strings.Contains(err.Error(), "failed calling webhook")
}

// bindsIn are binds in a new namespace.
func (w *world) bindsIn(t *testing.T, labels map[string]string) *binds {
	t.Helper()
	ns, _, members := w.pool(t, labels)
	return &binds{ns: ns, member: members[0].Name, without: w.kubelet.without}
}

// coldStart tries one for a claim that does not exist, as a dry run.
func (b *binds) coldStart(ctx context.Context) error {
	p := scenario.Pool{Name: "probe", Template: "probe"}
	template := builders.MakeTemplate(b.ns.Name, p.Template).APIVersion(b.ns.Version).Obj()
	sandbox := builders.MakeColdStart(b.ns.Claim(p, p.Name), template).Obj()
	_, err := b.ns.Resource(upstream.Sandboxes).Create(ctx, sandbox, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// annotate changes the annotations of the namespace's pool.
func (w *world) annotate(t *testing.T, ns *scenario.Namespace, patch string) {
	t.Helper()
	_, err := ns.Resource(upstream.SandboxWarmPools).Patch(t.Context(), "python", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	w.must(t, err)
}

// closed waits until the webhooks are closed by pools in these namespaces.
func (w *world) closed(t *testing.T, namespaces ...string) {
	t.Helper()
	w.eventually(t, fmt.Sprintf("webhooks are closed by pools in %v", namespaces), func(ctx context.Context) (string, bool) {
		var c admissionregistrationv1.ValidatingWebhookConfiguration
		if err := w.client.Get(ctx, client.ObjectKey{Name: webhooks.ConfigurationName}, &c); err != nil {
			return err.Error(), false
		}
		var got []string
		for _, h := range c.Webhooks {
			if h.Name == webhooks.PoolPrefix+webhooks.BindHook.Name {
				last := h.NamespaceSelector.MatchExpressions[len(h.NamespaceSelector.MatchExpressions)-1]
				got = append(got, last.Values...)
			}
		}
		return fmt.Sprint(got), slices.Equal(got, namespaces)
	})
}
