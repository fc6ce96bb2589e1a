package webhooks

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/freshbind/freshbind/internal/platform"
)

// Hook is one webhook: what the API server is told of it and what the binary
// itself has to know of that.
type Hook struct {
	// Name is the webhook's, and the prefix of its audit annotations.
	Name string
	Path string
	// FailOpen: its failurePolicy is Ignore.
	FailOpen bool
	Timeout  time.Duration

	// about is what the platform knows the requests of; before and after are further
	// conditions.
	about         platform.Requested
	before, after []admissionregistrationv1.MatchCondition

	rules      []admissionregistrationv1.RuleWithOperations
	conditions []admissionregistrationv1.MatchCondition
	// in are the namespaces that it is for, nil for all in scope; only and not narrow
	// them down by name.
	in        *metav1.LabelSelector
	only, not []string
}

const (
	create = admissionregistrationv1.Create
	update = admissionregistrationv1.Update
)

// The hooks. What they are about the platform says.
var (
	BindHook = Hook{
		Name: "bind.freshbind.dev", Path: "/bind", Timeout: 2 * time.Second, about: platform.Binds,
	}
	// ForeignControllerHook judges what controls a Sandbox and is neither pool nor
	// claim by its kind: it may be a claim by its UID.
	ForeignControllerHook = Hook{
		Name: "foreigncontroller.freshbind.dev", Path: "/foreigncontroller", Timeout: 2 * time.Second, about: platform.ForeignControllers,
	}
	// BindPodHook judges binds in releases whose members are bare Pods. Orphaning
	// a pool's Pods keeps the label, and is no bind.
	BindPodHook = Hook{
		Name: "bind-pod.freshbind.dev", Path: "/bind-pod", Timeout: 2 * time.Second, about: platform.BarePodBinds,
	}
	ColdStartHook = Hook{
		Name: "coldstart.freshbind.dev", Path: "/coldstart", Timeout: 2 * time.Second, about: platform.ColdStarts,
	}
	BirthHook = Hook{
		Name: "birth.freshbind.dev", Path: "/birth", FailOpen: true, Timeout: 2 * time.Second, about: platform.Births,
	}
	// BirthPodHook judges births in releases whose members are bare Pods. It is
	// served where BirthHook is.
	BirthPodHook = Hook{
		Name: "birth-pod.freshbind.dev", Path: "/birth", FailOpen: true, Timeout: 2 * time.Second, about: platform.BarePodBirths,
	}
	StampHook = Hook{
		Name: "stamp.freshbind.dev", Path: "/stamp", FailOpen: true, Timeout: 2 * time.Second, about: platform.NewMembers,
	}
	// StampBirthHook stamps the members that the users of Scope.PoolControllers
	// make, in place of StampHook, and marks them as such.
	StampBirthHook = Hook{
		Name: "stamp-birth.freshbind.dev", Path: "/stamp-birth", FailOpen: true, Timeout: 2 * time.Second, about: platform.Births,
	}
	// ProtectHook judges deletes by the users of Scope.PoolControllers only.
	ProtectHook = Hook{
		Name: "protect.freshbind.dev", Path: "/protect", FailOpen: true, Timeout: 2 * time.Second, about: platform.Deletes,
	}
	// ProtectPodHook does so in releases whose members are bare Pods: the names of
	// those are generated, and those of later releases' Pods are not.
	ProtectPodHook = Hook{
		Name: "protect-pod.freshbind.dev", Path: "/protect-pod", FailOpen: true, Timeout: 2 * time.Second, about: platform.BarePodDeletes,
	}
	// EvictHook is a mutating one, although it changes nothing: those are asked first, so
	// that its answer comes before that of whoever else refuses evictions.
	EvictHook = Hook{
		Name: "evict.freshbind.dev", Path: "/evict", FailOpen: true, Timeout: 2 * time.Second, about: platform.Evictions,
	}
	StampPodHook = Hook{
		Name: "stamp-pod.freshbind.dev", Path: "/stamp", FailOpen: true, Timeout: 2 * time.Second, about: platform.NewPods,
	}
)

// HandlerTimeout is how long a handler may take: less than the API server waits,
// so that the answer still says why.
func (h Hook) HandlerTimeout() time.Duration { return h.Timeout * 9 / 10 }

// Endpoint is where the API server finds the webhooks: a Service, or a URL.
type Endpoint struct {
	// URL is the base, https://host:port; empty when a Service is named.
	URL string
	// ServiceNamespace, ServiceName and ServicePort name the Service.
	ServiceNamespace, ServiceName string
	ServicePort                   int32
	// CABundle is PEM; empty when something else injects it.
	CABundle []byte
}

func (e Endpoint) at(path string) admissionregistrationv1.WebhookClientConfig {
	cfg := admissionregistrationv1.WebhookClientConfig{CABundle: e.CABundle}
	if e.URL != "" {
		// With two slashes Go's multiplexer redirects, and the API server follows no redirect.
		cfg.URL = ptr.To(strings.TrimRight(e.URL, "/") + path)
		return cfg
	}
	cfg.Service = &admissionregistrationv1.ServiceReference{
		Namespace: e.ServiceNamespace, Name: e.ServiceName, Path: ptr.To(path), Port: ptr.To(e.ServicePort),
	}
	return cfg
}

// Validate reports what is missing.
func (e Endpoint) Validate() error {
	switch {
	case e.URL == "" && e.ServiceName == "":
		return errors.New("a URL or a Service is required")
	case e.URL != "" && e.ServiceName != "":
		return errors.New("a URL and a Service exclude each other")
	case e.URL == "":
		return nil
	}
	// The API server refuses the others, too, but only when it is told.
	switch u, err := url.Parse(e.URL); {
	case err != nil:
		return fmt.Errorf("%q is not a URL: %w", e.URL, err)
	case u.Scheme != "https" || u.Host == "":
		return fmt.Errorf("%q: the API server calls webhooks by https alone, such as https://127.0.0.1:9443", e.URL)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("%q: a user, a query and a fragment are not allowed in the URL of a webhook", e.URL)
	}
	return nil
}

// ConfigurationName is the name of both webhook configurations of a platform without a
// suffix, and what all others begin with.
const ConfigurationName = "freshbind"

// ConfigurationOf is the name of both webhook configurations of a platform, and what
// those of floors begin with.
func ConfigurationOf(a platform.Admission) string { return ConfigurationName + a.Suffix }

// restampsPods: it has Pods stamped, and so changed stamps of them put back. That is for Pods
// of all platforms, so that the one with the plain names has it done.
func restampsPods(a platform.Admission) bool {
	_, stamps := a.Requests[platform.NewPods]
	return stamps && a.Suffix == ""
}

// Scope says whose writes are judged.
type Scope struct {
	// Only are the namespaces that are judged; empty for all.
	Only []string
	// Bind and ColdStart are the failure policies of binds and of cold starts where
	// something says enforce, empty for Fail; elsewhere they are Ignore.
	Bind, ColdStart admissionregistrationv1.FailurePolicyType
	// Open are namespaces in which both are Ignore.
	Open []string
	// Exempt are namespaces that are left out besides kube-system, our own
	// above all: a guard that stands in its own way cannot come back.
	Exempt []string
	// PoolControllers are the users that make a pool's members, and whose deletes
	// of a claim's sandbox are taken to be meant for an idle one; the platform's
	// own when empty.
	PoolControllers []string
	// Enforced are the namespaces that are enforced whatever their labels of that
	// name say, and EnforcedByDefault that those are which say nothing: policies
	// hold in them as well, and webhooks are closed.
	Enforced          []metav1.LabelSelector
	EnforcedByDefault bool
	// Restamp has changed stamps of Pods put back by a webhook, for API servers
	// that serve no mutating policies (Policies.WithoutMutating).
	Restamp bool
	// Self is the user that Freshbind runs as; needed for policies, and with
	// Restamp.
	Self string
}

// byAPoolController is the expression that one of the pool controllers makes the
// request.
func (s Scope) byAPoolController(a platform.Admission) string {
	users := s.PoolControllers
	if len(users) == 0 {
		users = a.Controllers
	}
	quoted := make([]string, len(users))
	for i, u := range users {
		quoted[i] = strconv.Quote(u)
	}
	return `request.userInfo.username in [` + strings.Join(quoted, ", ") + `]`
}

// byPools narrows a hook down to what the pool controllers write.
func (s Scope) byPools(a platform.Admission, h Hook) Hook {
	h.before = platform.When("by-a-pool-controller", s.byAPoolController(a))
	return h
}

// exceptBirthsByPools leaves out what StampBirthHook is asked about.
func (s Scope) exceptBirthsByPools(a platform.Admission, h Hook) Hook {
	h.after = platform.When("not-born-by-a-pool-controller", `!(`+s.byAPoolController(a)+` && `+a.MadeForPool+`)`)
	return h
}

// on completes hooks with what they are about on a platform, and leaves out those that
// it has no use for.
func on(a platform.Admission, hooks ...Hook) []Hook {
	var out []Hook
	for _, h := range hooks {
		requests, known := a.Requests[h.about]
		if !known {
			continue
		}
		h.Path = a.PathPrefix + h.Path
		h.rules = slices.Concat(requests.Rules, h.rules)
		h.conditions = slices.Concat(h.before, requests.Conditions, h.after)
		out = append(out, h)
	}
	return out
}

// Configurations returns the webhook configurations that make the API server
// ask us.
func Configurations(a platform.Admission, e Endpoint, s Scope) (
	*admissionregistrationv1.MutatingWebhookConfiguration, *admissionregistrationv1.ValidatingWebhookConfiguration,
) {
	scope := s.namespaces()
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "MutatingWebhookConfiguration"},
		ObjectMeta: called(ConfigurationOf(a)),
	}
	hooks := on(a, s.exceptBirthsByPools(a, StampHook), s.byPools(a, StampBirthHook), StampPodHook, EvictHook)
	if s.Restamp && restampsPods(a) {
		hooks = append(hooks, restampHook(s.Self))
	}
	for _, h := range hooks {
		mutating.Webhooks = append(mutating.Webhooks, admissionregistrationv1.MutatingWebhook{
			Name: h.Name, ClientConfig: e.at(h.Path), Rules: h.rules, MatchConditions: h.conditions,
			FailurePolicy: h.failurePolicy(), TimeoutSeconds: h.seconds(), NamespaceSelector: h.namespaces(scope),
			MatchPolicy:             ptr.To(admissionregistrationv1.Equivalent),
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
			ReinvocationPolicy:      ptr.To(admissionregistrationv1.IfNeededReinvocationPolicy),
			AdmissionReviewVersions: []string{"v1"},
		})
	}
	validating := validatingConfiguration(ConfigurationOf(a))
	validating.Webhooks = s.validating(e, slices.Concat(on(a, s.closed(s.enforced())...), on(a, s.audited()...), on(a, s.opened()...),
		on(a, BirthHook, BirthPodHook, s.byPools(a, ProtectHook), s.byPools(a, ProtectPodHook)), advising(a)))
	return mutating, validating
}

func validatingConfiguration(name string) *admissionregistrationv1.ValidatingWebhookConfiguration {
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingWebhookConfiguration"},
		ObjectMeta: called(name),
	}
}

// called has the label by which all of them can be taken away.
func called(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Labels: map[string]string{"app.kubernetes.io/name": "freshbind"}}
}

func (s Scope) validating(e Endpoint, hooks []Hook) []admissionregistrationv1.ValidatingWebhook {
	var out []admissionregistrationv1.ValidatingWebhook
	for _, h := range hooks {
		out = append(out, admissionregistrationv1.ValidatingWebhook{
			Name: h.Name, ClientConfig: e.at(h.Path), Rules: h.rules, MatchConditions: h.conditions,
			FailurePolicy: h.failurePolicy(), TimeoutSeconds: h.seconds(), NamespaceSelector: h.namespaces(s.namespaces()),
			MatchPolicy:             ptr.To(admissionregistrationv1.Equivalent),
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		})
	}
	return out
}

func (h Hook) failurePolicy() *admissionregistrationv1.FailurePolicyType {
	if h.FailOpen {
		return ptr.To(admissionregistrationv1.Ignore)
	}
	return ptr.To(admissionregistrationv1.Fail)
}

func (h Hook) seconds() *int32 { return ptr.To(int32(h.Timeout / time.Second)) }
