package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/retry"

	"github.com/freshbind/freshbind/internal/doctor"
	"github.com/freshbind/freshbind/test/fixture"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

// patient is an installation that is broken in one way after the other.
type patient struct {
	*shell
	kube kubernetes.Interface
}

// examined returns what the doctor found, and checks its exit code.
func (p *patient) examined() []doctor.Finding {
	p.t.Helper()
	out, code := p.run("doctor", "-o", "json")
	var got struct{ Findings []doctor.Finding }
	text, _, _ := strings.Cut(out, "\nerror: ")
	p.must(json.Unmarshal([]byte(text), &got))
	want := 0
	switch {
	case doctor.Sick(got.Findings):
		want = 1
	case doctor.Blind(got.Findings):
		want = 5
	}
	if code != want {
		p.t.Errorf("exit code is %d, want %d", code, want)
	}
	return got.Findings
}

// names waits until the doctor says of a check that it failed, and why.
func (p *patient) names(check, why string) {
	p.t.Helper()
	p.eventually(check+": "+why, func(context.Context) (string, bool) {
		found := p.examined()
		return fmt.Sprint(found), slices.ContainsFunc(found, func(f doctor.Finding) bool {
			return f.Check == check && f.Status == doctor.Failed && strings.Contains(f.Found, why) && f.Do != ""
		})
	})
}

func (p *patient) healthy() {
	p.t.Helper()
	p.eventually("nothing failed", func(context.Context) (string, bool) {
		found := p.examined()
		return fmt.Sprint(found), !slices.ContainsFunc(found, func(f doctor.Finding) bool {
			return f.Status == doctor.Failed || f.Status == doctor.Unknown
		})
	})
}

// edit changes one of the validating webhooks.
func (p *patient) edit(webhook string, change func(*admissionregistrationv1.ValidatingWebhook)) {
	p.t.Helper()
	configurations := p.kube.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	// Freshbind writes to it, too.
	p.must(retry.RetryOnConflict(scenario.Conflicts, func() error {
		c, err := configurations.Get(p.t.Context(), "freshbind", metav1.GetOptions{})
		if err != nil {
			return err
		}
		for i := range c.Webhooks {
			if c.Webhooks[i].Name == webhook {
				change(&c.Webhooks[i])
			}
		}
		_, err = configurations.Update(p.t.Context(), c, metav1.UpdateOptions{})
		return err
	}))
}

// passing waits until the metric of the self-test says 1, or 0.
func (p *patient) passing(want float64) {
	p.t.Helper()
	p.eventually(fmt.Sprintf("freshbind_self_test_success %g", want), func(context.Context) (string, bool) {
		got := p.w.metric(p.t, "freshbind_self_test_success")
		return fmt.Sprint(got), got == want && p.w.metric(p.t, "freshbind_self_test_timestamp_seconds") > 0
	})
}

// Each part of an installation is broken once; the self-test notices what
// concerns binds, the doctor names the part, and both are well again afterwards.
func TestDoctorNamesWhatIsBroken(t *testing.T) {
	t.Parallel()
	w := ownWorld(t, scenario.WorldOptions{Guard: fixture.Options{Args: []string{
		"--leader-elect=true", "--leader-election-namespace=default", "--self-test=true", configured(t, "selfTest: {interval: 1s}\n"),
	}}})
	s := w.enforced(t)
	s.pool(scenario.Pool{Replicas: 1, Strategy: scenario.Recreate})
	kube, err := kubernetes.NewForConfig(w.Cluster.Config())
	s.must(err)
	p := &patient{s.shell(), kube}
	p.passing(1)
	p.healthy()

	otherCA, _, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	s.must(err)
	audited := w.namespace(t, nil)
	audited.pool(scenario.Pool{Name: "lax", Replicas: 1})
	for _, tc := range []struct {
		name       string
		breakIt    func()
		repair     func()
		check, why string
		// noticed: the self-test fails as well.
		noticed bool
	}{
		{"a selector leaves out namespaces", func() {
			p.edit("bind.freshbind.dev", func(h *admissionregistrationv1.ValidatingWebhook) {
				h.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"no": "body"}}
			})
		}, nil, "Webhooks", "leaves out namespaces that enforce: " + s.Name, true},
		{"rules of something else", func() {
			p.edit("bind.freshbind.dev", func(h *admissionregistrationv1.ValidatingWebhook) { h.Rules[0].Resources = []string{"widgets"} })
		}, nil, "Webhooks", "bind.freshbind.dev has other rules", true},
		{"a condition that is never true", func() {
			p.edit("coldstart.freshbind.dev", func(h *admissionregistrationv1.ValidatingWebhook) { h.MatchConditions[0].Expression = "false" })
		}, nil, "Webhooks", "coldstart.freshbind.dev has other matchConditions", true},
		{"a condition that is never true, where nothing is enforced", func() {
			p.edit("audit-coldstart.freshbind.dev", func(h *admissionregistrationv1.ValidatingWebhook) { h.MatchConditions[0].Expression = "false" })
		}, nil, "Webhooks", "audit-coldstart.freshbind.dev has other matchConditions", true},
		{"an empty caBundle", func() {
			p.edit("coldstart.freshbind.dev", func(h *admissionregistrationv1.ValidatingWebhook) { h.ClientConfig.CABundle = nil })
		}, nil, "CA", "coldstart.freshbind.dev has an empty caBundle", true},
		{"an empty caBundle, where nothing is enforced", func() {
			p.edit("audit-coldstart.freshbind.dev", func(h *admissionregistrationv1.ValidatingWebhook) { h.ClientConfig.CABundle = nil })
		}, nil, "CA", "audit-coldstart.freshbind.dev has an empty caBundle", true},
		{"another CA", func() {
			for _, name := range []string{"bind.freshbind.dev", "coldstart.freshbind.dev"} {
				p.edit(name, func(h *admissionregistrationv1.ValidatingWebhook) { h.ClientConfig.CABundle = otherCA })
			}
		}, nil, "Refusal", "x509", true},
		{"a failurePolicy that the path does not say", func() {
			ignore := admissionregistrationv1.Ignore
			p.edit("bind.freshbind.dev", func(h *admissionregistrationv1.ValidatingWebhook) { h.FailurePolicy = &ignore })
		}, nil, "Webhooks", "failurePolicy Ignore", false},
		{"no webhooks", func() {
			s.must(kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(t.Context(), "freshbind", metav1.DeleteOptions{}))
		}, nil, "Webhooks", "does not exist", true},
		{"no policy", func() {
			s.must(kube.AdmissionregistrationV1().ValidatingAdmissionPolicies().Delete(t.Context(), "freshbind-stamp", metav1.DeleteOptions{}))
		}, nil, "Policies", "freshbind-stamp does not exist", false},
		{"no right to delete members", func() { p.withoutVerb("sandboxes", "delete") }, p.allRights(), "Rights", "may not delete sandboxes", false},
		{"no right to test", func() { p.withoutVerb("sandboxes", "create") }, p.allRights(), "Rights", "may not create sandboxes", true},
		{"nobody serves", func() { s.must(w.Guard.Stop()) }, func() { s.must(w.Guard.Start(t.Context())) }, "Replicas", "nobody answers", false},
	} {
		t.Logf("broken: %s", tc.name)
		tc.breakIt()
		p.names(tc.check, tc.why)
		if tc.noticed {
			p.passing(0)
			p.names("SelfTest", "failed")
		}
		if tc.repair != nil {
			tc.repair()
		}
		s.must(w.Guard.Install(t.Context()))
		p.passing(1)
		p.healthy()
	}
	// Who may see nothing, and who reaches nobody, does not hear that all is well.
	for _, blind := range []string{"--as=nobody", "--server=https://127.0.0.1:1"} {
		p.says(5, "doctor "+blind, string(doctor.Unknown), "error: not everything could be found out")
	}
	found := p.examined()
	if !slices.ContainsFunc(found, func(f doctor.Finding) bool {
		return f.Check == "Enforcement" && f.Status == doctor.Warning && strings.Contains(f.Found, audited.Name)
	}) {
		t.Errorf("no warning that %s is only audited: %v", audited.Name, found)
	}
	p.nothingLeft()
}

// nothingLeft: a self-test stores nothing but its result.
func (p *patient) nothingLeft() {
	p.t.Helper()
	namespace, err := scenario.Use(p.w.Cluster.Config(), p.w.Version, metav1.NamespaceDefault)
	p.must(err)
	list, err := namespace.Resource(upstream.Sandboxes).List(p.t.Context(), metav1.ListOptions{})
	p.must(err)
	if len(list.Items) != 0 {
		p.t.Errorf("%d sandboxes are left in namespace default", len(list.Items))
	}
	for _, m := range p.full(scenario.Pool{Name: "python", Template: "python", Replicas: 1}, "") {
		if owners := p.get(upstream.Sandboxes, m.Name).GetOwnerReferences(); len(owners) != 1 {
			p.t.Errorf("member %s has owners %v", m.Name, owners)
		}
	}
	if _, err := p.kube.CoreV1().Pods(metav1.NamespaceDefault).Get(p.t.Context(), "freshbind-self-test", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		p.t.Errorf("a Pod is left: %v", err)
	}
}

// withoutVerb takes a right away from Freshbind.
func (p *patient) withoutVerb(resource, verb string) {
	p.t.Helper()
	roles := p.kube.RbacV1().ClusterRoles()
	role, err := roles.Get(p.t.Context(), "freshbind", metav1.GetOptions{})
	p.must(err)
	for i := range role.Rules {
		if slices.Contains(role.Rules[i].Resources, resource) {
			role.Rules[i].Verbs = slices.DeleteFunc(role.Rules[i].Verbs, func(v string) bool { return v == verb })
		}
	}
	role.Rules = slices.DeleteFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return len(r.Verbs) == 0 })
	_, err = roles.Update(p.t.Context(), role, metav1.UpdateOptions{})
	p.must(err)
}

// allRights returns what puts the present rights back.
func (p *patient) allRights() func() {
	p.t.Helper()
	roles := p.kube.RbacV1().ClusterRoles()
	before, err := roles.Get(p.t.Context(), "freshbind", metav1.GetOptions{})
	p.must(err)
	return func() {
		p.t.Helper()
		now, err := roles.Get(p.t.Context(), "freshbind", metav1.GetOptions{})
		p.must(err)
		now.Rules = before.Rules
		_, err = roles.Update(p.t.Context(), now, metav1.UpdateOptions{})
		p.must(err)
	}
}
