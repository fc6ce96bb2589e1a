package doctor

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/internal/settings"
)

var now = time.Now()

// bind is a webhook behind a Service, as it has to be.
func bind(t *testing.T, change ...func(*admissionregistrationv1.ValidatingWebhook)) *admissionregistrationv1.ValidatingWebhookConfiguration {
	t.Helper()
	ca, _, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	h := admissionregistrationv1.ValidatingWebhook{
		Name: "bind.freshbind.dev", FailurePolicy: ptr.To(admissionregistrationv1.Fail),
		ClientConfig: admissionregistrationv1.WebhookClientConfig{CABundle: ca, Service: &admissionregistrationv1.ServiceReference{
			Namespace: "own", Name: "freshbind", Path: ptr.To("/bind"),
		}},
		MatchConditions:   []admissionregistrationv1.MatchCondition{{Name: "a", Expression: "true"}},
		NamespaceSelector: &metav1.LabelSelector{},
	}
	for _, c := range change {
		c(&h)
	}
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "freshbind"}, Webhooks: []admissionregistrationv1.ValidatingWebhook{h},
	}
}

func mutating() *admissionregistrationv1.MutatingWebhookConfiguration {
	return &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "freshbind"}}
}

func lease(name, holder string, ago time.Duration, result string) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "own", Name: name, Annotations: map[string]string{settings.SelfTestKey: result}},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &holder, RenewTime: ptr.To(metav1.NewMicroTime(now.Add(-ago))), LeaseDurationSeconds: ptr.To(int32(15)),
		},
	}
}

func endpoints(ready ...bool) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
		Namespace: "own", Name: "freshbind-x", Labels: map[string]string{discoveryv1.LabelServiceName: "freshbind"},
	}}
	for _, r := range ready {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(r)}})
	}
	return s
}

func clientCAs(bundle string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "own", Name: "freshbind"}, Data: map[string]string{"client-ca.crt": bundle}}
}

func newDoctor(t *testing.T, funcs interceptor.Funcs, objs ...client.Object) *Doctor {
	t.Helper()
	c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(objs...).WithInterceptorFuncs(funcs).
		WithIndex(&coordinationv1.Lease{}, metav1.ObjectNameField, func(o client.Object) []string { return []string{o.GetName()} }).
		WithIndex(&corev1.Pod{}, "spec.schedulerName", func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.SchedulerName} }).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }).Build()
	return &Doctor{
		Platform: agentsandbox.Objects{}.Kinds(), Name: agentsandbox.Name,
		Client: c, Mutating: mutating(), Validating: bind(t), User: "system:serviceaccount:own:freshbind", TestNamespace: "default",
		Kinds:    func(context.Context) (platform.Served, bool, error) { return platform.Served{}, false, nil },
		Enforced: func(l labels.Set) bool { return l[settings.EnforcementKey] == "enforce" },
		Now:      func() time.Time { return now },
	}
}

func TestChecks(t *testing.T) {
	type checkOf func(*Doctor, context.Context) ([]Finding, error)
	prod := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "prod", Labels: map[string]string{settings.EnforcementKey: "enforce"}}}
	for name, tc := range map[string]struct {
		check checkOf
		objs  []client.Object
		want  Status
		says  string
	}{
		"no webhooks":            {(*Doctor).webhooks, nil, Failed, "does not exist"},
		"webhooks as they are":   {(*Doctor).webhooks, []client.Object{mutating(), bind(t), prod}, OK, "1 webhooks"},
		"no webhook of the name": {(*Doctor).webhooks, []client.Object{mutating(), bind(t, func(h *admissionregistrationv1.ValidatingWebhook) { h.Name = "x" })}, Failed, "is missing"},
		"an objectSelector": {(*Doctor).webhooks, []client.Object{mutating(), bind(t, func(h *admissionregistrationv1.ValidatingWebhook) {
			h.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
		})}, Failed, "objectSelector"},
		"a condition of the installation": {(*Doctor).webhooks, []client.Object{mutating(), bind(t, func(h *admissionregistrationv1.ValidatingWebhook) {
			h.MatchConditions = append(h.MatchConditions, admissionregistrationv1.MatchCondition{Name: "by-a-pool-controller", Expression: "x"})
		})}, OK, "1 webhooks"},
		"a namespace left out": {(*Doctor).webhooks, []client.Object{mutating(), bind(t, func(h *admissionregistrationv1.ValidatingWebhook) {
			h.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
		}), prod}, Failed, "prod"},
		"open, and its path says so": {(*Doctor).webhooks, []client.Object{mutating(), bind(t, func(h *admissionregistrationv1.ValidatingWebhook) {
			h.FailurePolicy, h.ClientConfig.Service.Path = ptr.To(admissionregistrationv1.Ignore), ptr.To("/bind/open")
		})}, OK, "1 webhooks"},
		"audited namespaces wait": {func(d *Doctor, ctx context.Context) ([]Finding, error) {
			d.Validating.Webhooks[0].Name = "audit-bind.freshbind.dev"
			return d.webhooks(ctx)
		}, []client.Object{mutating(), bind(t, func(h *admissionregistrationv1.ValidatingWebhook) { h.Name = "audit-bind.freshbind.dev" })}, Failed, "claims wait"},
		"closed by pools": {(*Doctor).webhooks, []client.Object{mutating(), bind(t, func(h *admissionregistrationv1.ValidatingWebhook) {
			h.MatchConditions = append(h.MatchConditions, admissionregistrationv1.MatchCondition{Name: "where-no-pool-enforces", Expression: "x"})
		})}, OK, "1 webhooks"},
		"a floor's webhooks are missing": {func(d *Doctor, ctx context.Context) ([]Finding, error) {
			d.Floors = []*admissionregistrationv1.ValidatingWebhookConfiguration{{ObjectMeta: metav1.ObjectMeta{Name: "freshbind-by-floor-0"}}}
			return d.webhooks(ctx)
		}, []client.Object{mutating(), bind(t)}, Failed, "freshbind-by-floor-0 does not exist"},
		"an expired CA": {func(d *Doctor, ctx context.Context) ([]Finding, error) {
			d.Now = func() time.Time { return now.AddDate(2, 0, 0) }
			return d.authorities(ctx)
		}, []client.Object{mutating(), bind(t)}, Failed, "expired"},
		"a CA": {(*Doctor).authorities, []client.Object{mutating(), bind(t)}, OK, "trust one CA"},
		"no CA": {(*Doctor).authorities, []client.Object{mutating(), bind(t, func(h *admissionregistrationv1.ValidatingWebhook) {
			h.ClientConfig.CABundle = nil
		})}, Failed, "empty caBundle"},
		"no PEM": {(*Doctor).authorities, []client.Object{mutating(), bind(t, func(h *admissionregistrationv1.ValidatingWebhook) {
			h.ClientConfig.CABundle = []byte("x")
		})}, Failed, "cannot be read"},
		"two replicas":            {(*Doctor).replicas, []client.Object{mutating(), bind(t), endpoints(true, true)}, OK, "2 of 2"},
		"one of two":              {(*Doctor).replicas, []client.Object{mutating(), bind(t), endpoints(true, false)}, Warning, "1 of 2"},
		"none of two":             {(*Doctor).replicas, []client.Object{mutating(), bind(t), endpoints(false, false)}, Failed, "none of them ready"},
		"no Service":              {(*Doctor).replicas, []client.Object{mutating(), bind(t)}, Failed, "0 replicas"},
		"whoever asks":            {(*Doctor).clients, []client.Object{mutating(), bind(t), clientCAs("")}, OK, "whoever reaches"},
		"the API server alone":    {(*Doctor).clients, []client.Object{mutating(), bind(t), clientCAs(string(bind(t).Webhooks[0].ClientConfig.CABundle))}, OK, "only clients with a certificate"},
		"CAs that are none":       {(*Doctor).clients, []client.Object{mutating(), bind(t), clientCAs("x")}, Failed, "cannot be read"},
		"no configuration":        {(*Doctor).clients, []client.Object{mutating(), bind(t)}, "", ""},
		"a leader":                {(*Doctor).leader, []client.Object{lease("freshbind", "a", time.Second, "")}, OK, "a leads"},
		"a late leader":           {(*Doctor).leader, []client.Object{lease("freshbind", "a", time.Minute, "")}, Failed, "last alive"},
		"nobody leads":            {(*Doctor).leader, []client.Object{lease("freshbind", "", time.Second, "")}, Failed, "nobody leads"},
		"never a leader":          {(*Doctor).leader, nil, Warning, "no leader was ever"},
		"a test that passed":      {(*Doctor).selfTest, []client.Object{lease("freshbind-self-test", "a", time.Second, "passed")}, OK, "1s ago passed"},
		"a test that failed":      {(*Doctor).selfTest, []client.Object{lease("freshbind-self-test", "a", time.Second, "x509")}, Failed, "x509"},
		"a test of long ago":      {(*Doctor).selfTest, []client.Object{lease("freshbind-self-test", "a", time.Hour, "passed")}, Warning, "1h0m0s ago"},
		"never a test":            {(*Doctor).selfTest, nil, Warning, "no self-test"},
		"nothing to guard":        {(*Doctor).platforms, nil, Warning, "not installed"},
		"nothing to be refused":   {(*Doctor).refusal, nil, "", ""},
		"nothing to be enforced":  {(*Doctor).enforcement, nil, "", ""},
		"no policies are wanted":  {(*Doctor).policies, nil, OK, "0 admission policies"},
		"no webhooks, no trouble": {(*Doctor).authorities, nil, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := tc.check(newDoctor(t, interceptor.Funcs{}, tc.objs...), t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if tc.want == "" {
				if len(found) != 0 {
					t.Errorf("found %v, want nothing", found)
				}
				return
			}
			if !slices.ContainsFunc(found, func(f Finding) bool { return f.Status == tc.want && strings.Contains(f.Found, tc.says) }) {
				t.Errorf("found %v, want %s with %q", found, tc.want, tc.says)
			}
		})
	}
}

// A right without a resource is one to nothing, or to what nobody meant.
func TestRightsOfAPlatformWhoseClaimsHaveNoObject(t *testing.T) {
	k := agentsandbox.Objects{}.Kinds()
	whole := len(Rights(k))
	k.Claim = platform.Kind{}
	rights := Rights(k)
	for _, rule := range rights {
		if slices.Contains(rule.Resources, "") {
			t.Errorf("%v names no resource", rule)
		}
	}
	if len(rights) != whole-1 {
		t.Errorf("%d rights, want one less than %d", len(rights), whole)
	}
}

func TestRights(t *testing.T) {
	for name, tc := range map[string]struct {
		namespaces []string
		denied     authorizationv1.ResourceAttributes
		want       []string
	}{
		"all are there": {nil, authorizationv1.ResourceAttributes{}, nil},
		"one is missing": {
			nil, authorizationv1.ResourceAttributes{Verb: "delete", Group: "agents.x-k8s.io", Resource: "sandboxes"},
			[]string{"system:serviceaccount:own:freshbind may not delete sandboxes in all namespaces"},
		},
		"the self-test's": {
			nil, authorizationv1.ResourceAttributes{Verb: "create", Group: "agents.x-k8s.io", Resource: "sandboxes", Namespace: "default"},
			[]string{"system:serviceaccount:own:freshbind may not create sandboxes in namespace default"},
		},
		"in one of two namespaces": {
			[]string{"a", "b"}, authorizationv1.ResourceAttributes{Verb: "patch", Resource: "pods", Namespace: "b"},
			[]string{"system:serviceaccount:own:freshbind may not patch pods in namespace b"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDoctor(t, interceptor.Funcs{Create: func(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.CreateOption) error {
				review := obj.(*authorizationv1.SubjectAccessReview)
				a := *review.Spec.ResourceAttributes
				a.Version = ""
				review.Status.Allowed = a != tc.denied
				return nil
			}})
			d.Namespaces = tc.namespaces
			found, err := d.rights(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range found {
				if f.Status == Failed {
					got = append(got, f.Found)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}

// Without the right to delete Pods somebody has to know of those that nobody else
// takes away.
func TestPodsThatOnlyFreshbindTakesAway(t *testing.T) {
	pod := func(change func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "python-x"}}
		change(p)
		return p
	}
	ofPool := func(p *corev1.Pod) {
		p.Labels = map[string]string{agentsandbox.PodPoolLabel: "h"}
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "extensions.agents.x-k8s.io/v1alpha1", Kind: "SandboxWarmPool", Controller: ptr.To(true)}}
	}
	waits := func(p *corev1.Pod) { p.Spec.SchedulerName = "second" }
	for name, tc := range map[string]struct {
		pod    *corev1.Pod
		former string
		may    bool
		want   string
	}{
		"a member":                      {pod(ofPool), "second", false, "legacy.barePods=true"},
		"a member, deleted when stale":  {pod(ofPool), "second", true, ""},
		"orphaned":                      {pod(func(p *corev1.Pod) { ofPool(p); p.OwnerReferences = nil }), "second", false, ""},
		"of somebody else":              {pod(func(p *corev1.Pod) { ofPool(p); p.OwnerReferences[0].Kind = "ReplicaSet" }), "second", false, ""},
		"waits for a scheduler of once": {pod(waits), "second", false, "legacy.secondScheduler=true"},
		"waits for one that is there":   {pod(waits), "", false, ""},
		"waits for another":             {pod(waits), "third", false, ""},
		"has a node":                    {pod(func(p *corev1.Pod) { waits(p); p.Spec.NodeName = "n" }), "second", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDoctor(t, interceptor.Funcs{Create: func(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.CreateOption) error {
				obj.(*authorizationv1.SubjectAccessReview).Status.Allowed = tc.may
				return nil
			}}, tc.pod)
			d.BarePodLabel, d.FormerScheduler = agentsandbox.PodPoolLabel, tc.former
			d.Kinds = func(context.Context) (platform.Served, bool, error) {
				return platform.Served{Pools: schema.GroupVersionKind{Group: "extensions.agents.x-k8s.io", Version: "v1alpha1", Kind: "SandboxWarmPool"}}, true, nil
			}
			found, err := d.podDeletes(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(found) > 1 || (len(found) == 1) != (tc.want != "") || len(found) == 1 && !strings.HasSuffix(found[0].Do, tc.want) {
				t.Errorf("found %v, want what %q is to be done about", found, tc.want)
			}
		})
	}
}

func TestWhatCannotBeReadIsUnknown(t *testing.T) {
	refused := errors.New("forbidden")
	d := newDoctor(t, interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return refused
		},
		List:   func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return refused },
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return refused },
	})
	d.Kinds = func(context.Context) (platform.Served, bool, error) { return platform.Served{}, false, refused }
	found := d.Run(t.Context())
	for _, f := range found {
		if f.Status != Unknown && f.Check != "Policies" {
			t.Errorf("%s is %s: %s", f.Check, f.Status, f.Found)
		}
	}
	if len(found) != 12 || Sick(found) || !Blind(found) {
		t.Errorf("%d findings, sick %t, blind %t; want 12, none of them failed", len(found), Sick(found), Blind(found))
	}
}

func TestGroupsOf(t *testing.T) {
	for user, want := range map[string][]string{
		"jane":                            {"system:authenticated"},
		"system:serviceaccount:ns:freshb": {"system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"},
	} {
		if diff := cmp.Diff(want, groupsOf(user)); diff != "" {
			t.Errorf("%s (-want,+got)\n%s", user, diff)
		}
	}
}
