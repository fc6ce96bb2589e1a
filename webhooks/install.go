package webhooks

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
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

	rules      []admissionregistrationv1.RuleWithOperations
	conditions []admissionregistrationv1.MatchCondition
	// only and not narrow down the namespaces by name.
	only, not []string
}

const (
	create = admissionregistrationv1.Create
	update = admissionregistrationv1.Update
)

// The hooks. Each condition says exactly what the handler judges, so that no
// other write costs a call.
var (
	BindHook = Hook{
		Name: "bind.freshbind.dev", Path: "/bind", Timeout: 2 * time.Second,
		rules:      sandboxes(update),
		conditions: when("a-claim-gains-the-sandbox", gainsAClaim),
	}
	// ForeignControllerHook judges what controls a Sandbox and is neither pool nor
	// claim by its kind: it may be a claim by its UID.
	ForeignControllerHook = Hook{
		Name: "foreigncontroller.freshbind.dev", Path: "/foreigncontroller", Timeout: 2 * time.Second,
		rules: sandboxes(create, update),
		conditions: when("a-controller-that-is-neither-pool-nor-claim",
			`request.operation == 'CREATE' ? `+owners+`.exists(o, `+foreignController+`) && !`+owners+`.exists(o, `+claimOwner+`) : `+
				gainsAForeignController+` && !`+gainsAClaim),
	}
	// BindPodHook judges binds in releases whose members are bare Pods. Orphaning
	// a pool's Pods keeps the label, and is no bind.
	BindPodHook = Hook{
		Name: "bind-pod.freshbind.dev", Path: "/bind-pod", Timeout: 2 * time.Second,
		rules: []admissionregistrationv1.RuleWithOperations{rule("", "v1", "pods", update)},
		conditions: when("a-bare-pod-leaves-its-pool-or-is-given-to-another-claim",
			poolLabel+` in `+oldLabels+` && !(`+poolLabel+` in `+newLabels+`) && `+
				`!`+owners+`.exists(o, `+poolOwner+` && `+controls+`) || `+
				claimLabel+` in `+oldLabels+` && `+claimLabel+` in `+newLabels+` && `+
				`object.metadata.labels[`+claimLabel+`] != oldObject.metadata.labels[`+claimLabel+`] && `+
				`!`+oldOwners+`.exists(o, `+controls+`)`),
	}
	ColdStartHook = Hook{
		Name: "coldstart.freshbind.dev", Path: "/coldstart", Timeout: 2 * time.Second,
		rules:      sandboxes(create),
		conditions: when("made-for-a-claim", owners+`.exists(o, `+claimOwner+`)`),
	}
	BirthHook = Hook{
		Name: "birth.freshbind.dev", Path: "/birth", FailOpen: true, Timeout: 2 * time.Second,
		rules:      sandboxes(create),
		conditions: when("made-for-a-pool", bornForAPool),
	}
	// BirthPodHook judges births in releases whose members are bare Pods. It is
	// served where BirthHook is.
	BirthPodHook = Hook{
		Name: "birth-pod.freshbind.dev", Path: "/birth", FailOpen: true, Timeout: 2 * time.Second,
		rules:      []admissionregistrationv1.RuleWithOperations{rule("", "v1", "pods", create)},
		conditions: when("made-for-a-pool", owners+`.exists(o, `+poolOwner+` && `+controls+`)`),
	}
	StampHook = Hook{
		Name: "stamp.freshbind.dev", Path: "/stamp", FailOpen: true, Timeout: 2 * time.Second,
		rules: sandboxes(create),
		conditions: when("made-for-a-pool-or-claim-or-carrying-a-mark",
			owners+`.exists(o, `+poolOwner+` || `+claimOwner+`) || `+carries+` || `+carriesBirth),
	}
	// StampBirthHook stamps the members that the users of Scope.PoolControllers
	// make, in place of StampHook, and marks them as such.
	StampBirthHook = Hook{
		Name: "stamp-birth.freshbind.dev", Path: "/stamp-birth", FailOpen: true, Timeout: 2 * time.Second,
		rules:      sandboxes(create),
		conditions: when("made-for-a-pool", bornForAPool),
	}
	// ProtectHook judges deletes by the users of Scope.PoolControllers only.
	ProtectHook = Hook{
		Name: "protect.freshbind.dev", Path: "/protect", FailOpen: true, Timeout: 2 * time.Second,
		rules:      sandboxes(admissionregistrationv1.Delete),
		conditions: append(when("of-a-claim", oldOwners+`.exists(o, `+claimOwner+`)`), withoutUID...),
	}
	// ProtectPodHook does so in releases whose members are bare Pods: the names of
	// those are generated, and those of later releases' Pods are not.
	ProtectPodHook = Hook{
		Name: "protect-pod.freshbind.dev", Path: "/protect-pod", FailOpen: true, Timeout: 2 * time.Second,
		rules: []admissionregistrationv1.RuleWithOperations{rule("", "v1", "pods", admissionregistrationv1.Delete)},
		conditions: append(when("a-bare-pod-that-left-its-pool",
			`oldObject.metadata.?generateName.orValue('') != '' && `+
				`!`+oldOwners+`.exists(o, `+poolOwner+` || `+controls+` && !(`+boxOwner+`))`), withoutUID...),
	}
	withoutUID   = when("without-a-uid", `!request.?options.?preconditions.?uid.hasValue()`)
	StampPodHook = Hook{
		Name: "stamp-pod.freshbind.dev", Path: "/stamp", FailOpen: true, Timeout: 2 * time.Second,
		rules: []admissionregistrationv1.RuleWithOperations{rule("", "v1", "pods", create)},
		conditions: when("made-for-a-sandbox-or-a-pool",
			owners+`.exists(o, `+boxOwner+` || `+poolOwner+` && `+controls+`)`),
	}
)

// HandlerTimeout is how long a handler may take: less than the API server waits,
// so that the answer still says why.
func (h Hook) HandlerTimeout() time.Duration { return h.Timeout * 9 / 10 }

func when(name, expression string) []admissionregistrationv1.MatchCondition {
	return []admissionregistrationv1.MatchCondition{{Name: name, Expression: expression}}
}

func sandboxes(ops ...admissionregistrationv1.OperationType) []admissionregistrationv1.RuleWithOperations {
	// Every version, so that no request has to pass the conversion webhook
	// first, which may be down.
	return []admissionregistrationv1.RuleWithOperations{rule(agentsandbox.CoreGroup, "*", "sandboxes", ops...)}
}

func rule(group, version, resource string, ops ...admissionregistrationv1.OperationType) admissionregistrationv1.RuleWithOperations {
	return admissionregistrationv1.RuleWithOperations{
		Operations: ops,
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{group}, APIVersions: []string{version}, Resources: []string{resource},
			Scope: ptr.To(admissionregistrationv1.NamespacedScope),
		},
	}
}

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
		cfg.URL = ptr.To(e.URL + path)
		return cfg
	}
	cfg.Service = &admissionregistrationv1.ServiceReference{
		Namespace: e.ServiceNamespace, Name: e.ServiceName, Path: ptr.To(path), Port: ptr.To(e.ServicePort),
	}
	return cfg
}

// Validate reports what is missing.
func (e Endpoint) Validate() error {
	if (e.URL == "") == (e.ServiceName == "") {
		return fmt.Errorf("either a URL or a service is needed, not both")
	}
	return nil
}

// ConfigurationName is the name of both webhook configurations.
const ConfigurationName = "freshbind"

// Scope says whose writes are judged.
type Scope struct {
	// Only are the namespaces that are judged; empty for all.
	Only []string
	// Bind and ColdStart are the failure policies of binds and of cold starts;
	// empty for Fail.
	Bind, ColdStart admissionregistrationv1.FailurePolicyType
	// Open are namespaces in which both are Ignore.
	Open []string
	// Exempt are namespaces that are left out besides kube-system, our own
	// above all: a guard that stands in its own way cannot come back.
	Exempt []string
	// PoolControllers are the users that make a pool's members, and whose deletes
	// of a claim's sandbox are taken to be meant for an idle one; agent-sandbox's
	// own when empty.
	PoolControllers []string
	// Enforced are the namespaces that are enforced whatever their labels of that
	// name say, and EnforcedByDefault that those are which say nothing: policies
	// hold in them as well.
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
func (s Scope) byAPoolController() string {
	users := s.PoolControllers
	if len(users) == 0 {
		users = []string{agentsandbox.ControllerUser}
	}
	quoted := make([]string, len(users))
	for i, u := range users {
		quoted[i] = strconv.Quote(u)
	}
	return `request.userInfo.username in [` + strings.Join(quoted, ", ") + `]`
}

// byPools narrows a hook down to what the pool controllers write.
func (s Scope) byPools(h Hook) Hook {
	h.conditions = slices.Concat(when("by-a-pool-controller", s.byAPoolController()), h.conditions)
	return h
}

// exceptBirthsByPools leaves out what StampBirthHook is asked about.
func (s Scope) exceptBirthsByPools(h Hook) Hook {
	h.conditions = slices.Concat(h.conditions, when("not-born-by-a-pool-controller", `!(`+s.byAPoolController()+` && `+bornForAPool+`)`))
	return h
}

// Configurations returns the webhook configurations that make the API server
// ask us.
func Configurations(e Endpoint, s Scope) (
	*admissionregistrationv1.MutatingWebhookConfiguration, *admissionregistrationv1.ValidatingWebhookConfiguration,
) {
	scope := s.namespaces()
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "MutatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Name: ConfigurationName},
	}
	hooks := []Hook{s.exceptBirthsByPools(StampHook), s.byPools(StampBirthHook), StampPodHook}
	if s.Restamp {
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
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Name: ConfigurationName},
	}
	for _, h := range slices.Concat(s.closed(), s.opened(), []Hook{
		BirthHook, BirthPodHook, s.byPools(ProtectHook), s.byPools(ProtectPodHook), AdviseHook,
	}) {
		validating.Webhooks = append(validating.Webhooks, admissionregistrationv1.ValidatingWebhook{
			Name: h.Name, ClientConfig: e.at(h.Path), Rules: h.rules, MatchConditions: h.conditions,
			FailurePolicy: h.failurePolicy(), TimeoutSeconds: h.seconds(), NamespaceSelector: h.namespaces(scope),
			MatchPolicy:             ptr.To(admissionregistrationv1.Equivalent),
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		})
	}
	return mutating, validating
}

func (h Hook) failurePolicy() *admissionregistrationv1.FailurePolicyType {
	if h.FailOpen {
		return ptr.To(admissionregistrationv1.Ignore)
	}
	return ptr.To(admissionregistrationv1.Fail)
}

func (h Hook) seconds() *int32 { return ptr.To(int32(h.Timeout / time.Second)) }
