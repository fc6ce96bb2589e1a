package checker

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// owner is one owner reference, without its API version: references keep the version of their writer.
type owner struct {
	group, kind, name string
	uid               types.UID
	controller        bool
}

func (o owner) isClaim() bool {
	return o.kind == "SandboxClaim" && (o.group == groupExtensions || o.group == groupKruise) || o.isUser()
}

func (o owner) isPool() bool {
	return o.group == groupExtensions && o.kind == "SandboxWarmPool" || o.group == groupKruise && o.kind == "SandboxSet"
}

func ownersOf(u *unstructured.Unstructured) []owner {
	var out []owner
	for _, ref := range u.GetOwnerReferences() {
		group, _, _ := strings.Cut(ref.APIVersion, "/")
		out = append(out, owner{group: group, kind: ref.Kind, name: ref.Name, uid: ref.UID,
			controller: ref.Controller != nil && *ref.Controller})
	}
	return out
}

type templateState struct {
	uid       types.UID
	blueprint blueprint
	policies  policies
	err       error
	member    *content // what a pool builds from it
	token     *content // the same in v0.1.1, which adds nothing about DNS
	plain     *content // the same in releases that add nothing to it
	recycles  bool     // what is built from it comes back after use
}

type poolState struct {
	uid         types.UID
	template    string
	annotated   string // freshbind.dev/rollout-strategy
	strategy    string // spec.updateStrategy.type
	admit       string
	enforcement string
	restarted   string // freshbind.dev/restarted-at
	injected    string // freshbind.dev/injected-paths
	byName      bool   // freshbind.dev/claims
	deleting    bool
	rolls       bool // the platform replaces stale members itself
	recycles    bool // used members come back
}

// restartedAt is zero where no restart was asked for in a way that can be read.
func (p poolState) restartedAt() time.Time {
	at, err := time.Parse(time.RFC3339, p.restarted)
	if err != nil {
		return time.Time{}
	}
	return at
}

type claimState struct {
	pool     string // spec.warmPoolRef.name, or a v1alpha1 claim's spec.warmpool
	template string // v1alpha1 only: spec.sandboxTemplateRef.name
	env      []envVar
	volumes  []volumeClaim
	names    string
	ready    bool
	deleting bool
	// ends and expires: spec.lifecycle.shutdownTime, and whether it ends some time after the work is done.
	ends    string
	expires bool
	err     error
	status  any
	wants   int     // how many Sandboxes it may have, where that is said
	may     inPlace // what it may change of them
	// acted is the last version, up to this one, that its controller wrote: its status or its choice of a member changed.
	acted RV
}

type sandboxState struct {
	owners     []owner
	generation int64
	deleting   bool
	content    *content
	err        error
	ready      bool
	shown      bool // carries both labels without which agent-sandbox passes over it (isAdoptable)
	podName    string
	ips        string // as its status shows them
	ends       string // spec.shutdownTime
	suspended  bool
	template   string // the name of the template that it says it is of
	pool       string // the name of the pool that it says it is of, or was made for
	refers     bool   // it names a template, and does not say what is in it
	taken      string // when somebody took it, by their own clock, in whole seconds
}

func sameSandbox(a, b sandboxState) bool {
	return slices.Equal(a.owners, b.owners) && a.err == nil && b.err == nil && a.generation == b.generation && a.content == b.content && sameMarks(a, b)
}

func sameMarks(a, b sandboxState) bool {
	return a.deleting == b.deleting && a.ready == b.ready && a.shown == b.shown && a.podName == b.podName && a.ips == b.ips && a.pool == b.pool &&
		a.refers == b.refers && a.taken == b.taken && a.template == b.template && a.ends == b.ends && a.suspended == b.suspended
}

// claims returns the UIDs of the claims among the owners. Upstream knows its owners by UID alone (metav1.IsControlledBy), so
// whatever has a claim's UID is that claim.
func (h *History) claimsOf(s sandboxState) []types.UID {
	var out []types.UID
	for _, o := range s.owners {
		if h.isClaim(o) && !slices.Contains(out, o.uid) {
			out = append(out, o.uid)
		}
	}
	return out
}

func (h *History) isClaim(o owner) bool { return o.isClaim() || h.claims[o.uid] != nil }

// owner returns the reference with this UID, the controller if there are several.
func (s sandboxState) owner(uid types.UID) (out owner, ok bool) {
	for _, o := range s.owners {
		if o.uid == uid && (!ok || o.controller) {
			out, ok = o, true
		}
	}
	return out, ok
}

func (s sandboxState) controller() (owner, bool) {
	for _, o := range s.owners {
		if o.controller {
			return o, true
		}
	}
	return owner{}, false
}

// member reports whether a pool controls the Sandbox and no claim has it.
func (h *History) member(s sandboxState) (pool owner, ok bool) {
	o, ok := s.controller()
	return o, ok && o.isPool() && len(h.claimsOf(s)) == 0
}

type podState struct {
	sandbox    types.UID
	pool       owner // that controls it, where it is a member itself
	controlled bool  // by anything
	tracked    bool  // carries the label by which upstream finds the Pod of a Sandbox
	ephemeral  bool  // has ephemeral containers, which nobody can take off again
	generation int64
	phase      corev1.PodPhase
	deleting   bool
	node       string
	ips        string
	spec       string // JSON, as stored
	appArmor   string // the containers whose profiles are those of annotations, separated by commas
}

func samePod(a, b podState) bool { return a == b }

type namespaceState struct{ labels map[string]string }

func sameNamespace(a, b namespaceState) bool { return maps.Equal(a.labels, b.labels) }

// namespaceAt is what is known of a namespace just before rv.
func (h *History) namespaceAt(namespace string, rv RV) namespaceState {
	if e, ok := h.namespaces[namespace].before(rv); ok {
		return e.state
	}
	return namespaceState{}
}

func poolOf(u *unstructured.Unstructured) poolState {
	annotations := u.GetAnnotations()
	return poolState{
		uid:         u.GetUID(),
		template:    nestedString(u, "spec", "sandboxTemplateRef", "name"),
		strategy:    nestedString(u, "spec", "updateStrategy", "type"),
		annotated:   annotations[keyStrategy],
		admit:       annotations[keyAdmit],
		enforcement: annotations[keyEnforcement],
		restarted:   annotations[keyRestarted],
		injected:    annotations[keyInjected],
		byName:      annotations[keyClaims] != "",
		deleting:    u.GetDeletionTimestamp() != nil,
	}
}

func samePool(a, b poolState) bool { return a == b }

func claimOf(u *unstructured.Unstructured) claimState {
	if isKruise(u) {
		return kruiseClaimOf(u)
	}
	s := claimState{
		pool:     nestedString(u, "spec", "warmPoolRef", "name"),
		deleting: u.GetDeletionTimestamp() != nil,
		names:    u.GetAnnotations()[keySandboxName],
		ready:    ready(u),
		status:   u.Object["status"],
	}
	if s.names == "" {
		s.names = u.GetLabels()[keySandboxName]
	}
	if s.pool == "" {
		s.template = nestedString(u, "spec", "sandboxTemplateRef", "name")
		s.pool = nestedString(u, "spec", "warmpool")
	}
	s.ends = nestedString(u, "spec", "lifecycle", "shutdownTime")
	_, s.expires, _ = unstructured.NestedFieldNoCopy(u.Object, "spec", "lifecycle", "ttlSecondsAfterFinished")
	spec, _ := u.Object["spec"].(map[string]any)
	s.env, s.volumes, s.err = decodeClaim(spec)
	return s
}

// specificPool returns the pool a claim names. A v1alpha1 claim may name none: "none", "default" or nothing.
func (s claimState) specificPool() (string, bool) {
	if s.template == "" {
		return s.pool, s.pool != ""
	}
	return s.pool, s.pool != "" && s.pool != "none" && s.pool != "default"
}

// plain reports whether the claim can be served warm at all: env and volumes of its own force a cold start.
func (s claimState) plain() bool {
	return len(s.env) == 0 && len(s.volumes) == 0 && (s.template == "" || s.pool != "none")
}

// podOf takes the spec of the version before where it is the same.
func (h *History) podOf(e Event) (podState, error) {
	if o := h.pods[e.Object.GetUID()]; o != nil && e.SpecKey != "" && o.specKey == e.SpecKey {
		prev, _ := o.line.latest()
		return podWith(e.Object, prev.state.spec), nil
	}
	if e.PodSpec != "" {
		return podWith(e.Object, e.PodSpec), nil
	}
	s, err := podOf(e.Object)
	if e.bare() {
		if o := h.pods[e.Object.GetUID()]; o != nil {
			prev, _ := o.line.latest()
			return prev.state, nil
		}
	}
	return s, err
}

// podOf leaves sandbox empty for a Pod that no Sandbox controls.
func podOf(u *unstructured.Unstructured) (podState, error) {
	spec, err := json.Marshal(u.Object["spec"])
	if err != nil {
		return podState{}, fmt.Errorf("encode spec of Pod %s: %w", u.GetName(), err)
	}
	return podWith(u, string(spec)), nil
}

func podWith(u *unstructured.Unstructured, spec string) podState {
	_, tracked := u.GetLabels()[labelNameHash]
	ephemeral, _, _ := unstructured.NestedSlice(u.Object, "spec", "ephemeralContainers")
	s := podState{
		phase: corev1.PodPhase(nestedString(u, "status", "phase")), deleting: u.GetDeletionTimestamp() != nil, spec: spec,
		tracked: tracked, ephemeral: len(ephemeral) > 0, generation: u.GetGeneration(), node: nestedString(u, "spec", "nodeName"), ips: podIPs(u),
		appArmor: profiledByAnnotation(u),
	}
	owners := ownersOf(u)
	s.pool = poolOfPod(owners)
	for _, o := range owners {
		s.controlled = s.controlled || o.controller
		if o.isSandbox() {
			s.sandbox = o.uid
		}
	}
	return s
}

func (h *History) sandboxOf(u *unstructured.Unstructured, specKey string) sandboxState {
	if isKruise(u) {
		return h.kruiseSandboxOf(u, specKey)
	}
	labels := u.GetLabels()
	_, pooled := labels[labelPool]
	_, referred := labels[labelTemplateRef]
	s := sandboxState{
		owners:     ownersOf(u),
		generation: u.GetGeneration(),
		deleting:   u.GetDeletionTimestamp() != nil,
		ready:      ready(u),
		shown:      pooled && referred,
		podName:    u.GetAnnotations()[annotationPodName],
		template:   u.GetAnnotations()[annotationTemplate],
		ends:       nestedString(u, "spec", "shutdownTime"),
		suspended:  suspended(u),
	}
	addresses, _, _ := unstructured.NestedStringSlice(u.Object, "status", "podIPs")
	slices.Sort(addresses)
	s.ips = strings.Join(addresses, ",")
	if s.podName == "" {
		s.podName = u.GetName()
	}
	s.content, s.err = h.contentOf(u, specKey)
	return s
}

// suspended reads operatingMode, and what was in its place in v1alpha1.
func suspended(u *unstructured.Unstructured) bool {
	replicas, found, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
	return found && replicas == 0 || nestedString(u, "spec", "operatingMode") == "Suspended"
}

func (h *History) templateOf(u *unstructured.Unstructured) templateState {
	if isKruise(u) {
		return h.kruiseTemplateOf(u)
	}
	s := templateState{uid: u.GetUID(), policies: policiesOf(u)}
	b, err := decodeBlueprint(u)
	if err != nil {
		s.err = err
		return s
	}
	s.blueprint = b
	if s.member, s.err = h.intern(renderMember(b, s.policies)); s.err == nil {
		s.plain, s.err = h.intern(b)
	}
	// From v0.2.1 on the API server says Managed there.
	s.token = s.member
	if s.err == nil && nestedString(u, "spec", "networkPolicyManagement") == "" {
		s.token, s.err = h.intern(renderMember(b, policies{}))
	}
	return s
}

func ready(u *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(c any) bool {
		m, _ := c.(map[string]any)
		return m["type"] == "Ready" && m["status"] == string(metav1.ConditionTrue)
	})
}

// podIPs are a Pod's addresses, sorted.
func podIPs(u *unstructured.Unstructured) string {
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "podIPs")
	var out []string
	for _, item := range list {
		m, _ := item.(map[string]any)
		if ip, ok := m["ip"].(string); ok {
			out = append(out, ip)
		}
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}

func nestedString(u *unstructured.Unstructured, path ...string) string {
	s, _, _ := unstructured.NestedString(u.Object, path...)
	return s
}

// decode converts part of an unstructured object into a typed value; field names the part in errors.
func decode(raw any, into any, field string) error {
	if raw == nil {
		return nil
	}
	m, ok := raw.(map[string]any)
	if !ok {
		return fmt.Errorf("decode %s: it is a %T, not an object", field, raw)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(m, into); err != nil {
		return fmt.Errorf("decode %s: %w", field, err)
	}
	return nil
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
