package checker

import (
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// OpenKruise Agents, in the states that everything is judged by (api/v1alpha1 and pkg/sandbox-manager/infra/sandboxcr/claim.go
// of August 2026). A SandboxSet is a pool and, unless it refers to a SandboxTemplate, the template of that pool. Who has a
// Sandbox stands in an annotation: the UID of a SandboxClaim, or the id of a user of the E2B server, for whom there is no
// object. In either case it is an owner here.
const (
	groupKruise = "agents.kruise.io"

	labelKruisePool     = "agents.kruise.io/sandbox-pool"
	labelKruiseTemplate = "agents.kruise.io/sandbox-template"
	labelKruiseClaim    = "agents.kruise.io/claim-name"
	keyKruiseOwner      = "agents.kruise.io/owner"
	keyKruiseCleanup    = "agents.kruise.io/cleanup-enabled"
	keyKruiseTaken      = "agents.kruise.io/claim-timestamp"

	// kruiseScaleDown is the owner of what the SandboxSet deletes next.
	kruiseScaleDown = "__manager_scale_down"
	// kindUser is the kind of an owner that has no object.
	kindUser = "user of E2B"
	// setTemplates begins the names of templates that are SandboxSets.
	setTemplates = "SandboxSet/"
)

func isKruise(u *unstructured.Unstructured) bool { return u.GroupVersionKind().Group == groupKruise }

// kruiseOwners are a Sandbox's references, and who has it.
func kruiseOwners(u *unstructured.Unstructured) []owner {
	out := ownersOf(u)
	id := u.GetAnnotations()[keyKruiseOwner]
	if id == "" || id == kruiseScaleDown {
		return out
	}
	has := owner{group: groupKruise, kind: "SandboxClaim", name: u.GetLabels()[labelKruiseClaim], uid: types.UID(id), controller: true}
	if has.name == "" {
		has.kind, has.name = kindUser, id
	}
	return append(out, has)
}

// isUser: it has a Sandbox, and no object that could be in a recording.
func (o owner) isUser() bool { return o.group == groupKruise && o.kind == kindUser }

func (h *History) kruiseSandboxOf(u *unstructured.Unstructured, specKey string) sandboxState {
	labels := u.GetLabels()
	refers := nestedString(u, "spec", "templateRef", "name")
	s := sandboxState{
		owners:     kruiseOwners(u),
		generation: u.GetGeneration(),
		deleting:   u.GetDeletionTimestamp() != nil || u.GetAnnotations()[keyKruiseOwner] == kruiseScaleDown,
		ready:      ready(u),
		shown:      labels[labelKruiseTemplate] == labels[labelKruisePool] || labels[labelKruiseTemplate] == refers,
		podName:    u.GetName(),
		template:   labels[labelKruiseTemplate],
		ends:       nestedString(u, "spec", "shutdownTime"),
		ips:        nestedString(u, "status", "podInfo", "podIP"),
		suspended:  isTrue(u, "spec", "paused"),
		refers:     refers != "",
		taken:      u.GetAnnotations()[keyKruiseTaken],
		pool:       labels[labelKruisePool],
	}
	s.content, s.err = h.contentOf(u, specKey)
	return s
}

func isTrue(u *unstructured.Unstructured, path ...string) bool {
	is, _, _ := unstructured.NestedBool(u.Object, path...)
	return is
}

func kruisePoolOf(u *unstructured.Unstructured) poolState {
	s := poolOf(u)
	s.template = nestedString(u, "spec", "templateRef", "name")
	if s.template == "" {
		s.template = setTemplates + u.GetName()
	}
	s.rolls = true
	s.recycles = u.GetAnnotations()[keyKruiseCleanup] == "true" || cleansUp(u)
	return s
}

// cleansUp: what is built from it comes back after use.
func cleansUp(u *unstructured.Unstructured) bool {
	return nestedString(u, "spec", "template", "metadata", "annotations", keyKruiseCleanup) == "true"
}

// kruiseTemplateOf is that of a SandboxTemplate, or of a SandboxSet, whose members are built as they say.
func (h *History) kruiseTemplateOf(u *unstructured.Unstructured) templateState {
	s := templateState{uid: u.GetUID(), recycles: cleansUp(u)}
	if s.blueprint, s.err = decodeBlueprint(u); s.err == nil {
		s.member, s.err = h.intern(s.blueprint)
	}
	return s
}

func kruiseClaimOf(u *unstructured.Unstructured) claimState {
	s := claimState{
		pool: nestedString(u, "spec", "templateName"), deleting: u.GetDeletionTimestamp() != nil, status: u.Object["status"], wants: 1,
	}
	if n, found, _ := unstructured.NestedInt64(u.Object, "spec", "replicas"); found {
		s.wants = int(n)
	}
	has, _, _ := unstructured.NestedInt64(u.Object, "status", "claimedReplicas")
	s.ready = nestedString(u, "status", "phase") == "Completed" && int(has) >= s.wants
	_, s.expires, _ = unstructured.NestedFieldNoCopy(u.Object, "spec", "ttlAfterCompleted")
	s.ends = nestedString(u, "spec", "shutdownTime")
	s.may.image = nestedString(u, "spec", "inplaceUpdate", "image")
	amounts, _, _ := unstructured.NestedMap(u.Object, "spec", "inplaceUpdate", "resources")
	s.err = decode(amounts, &s.may.resources, "spec.inplaceUpdate.resources")
	return s
}

// kruiseFields are what a Sandbox is built from beside Pod and volumes. They are leaves that no type knows.
func kruiseFields(spec map[string]any) map[string]any {
	out := map[string]any{}
	for _, key := range []string{"persistentContents", "runtimes", "pauseStrategy"} {
		v := reflect.ValueOf(spec[key])
		if spec[key] != nil && (v.Kind() != reflect.Map && v.Kind() != reflect.Slice || v.Len() > 0) {
			out["/"+key] = spec[key]
		}
	}
	if ref, is, _ := unstructured.NestedString(spec, "templateRef", "name"); is {
		out["/templateRef"] = ref
	}
	return out
}

// inPlace is what a claim may change of a Sandbox as it takes it: image and resources of the first container; nothing of
// agent-sandbox's.
type inPlace struct {
	// anyone: no object says what they may be. Then the image may be any, and the amount of CPU.
	anyone    bool
	image     string
	resources corev1.ResourceRequirements
}

func (may inPlace) nothing() bool {
	return !may.anyone && may.image == "" && len(may.resources.Requests) == 0 && len(may.resources.Limits) == 0
}

// undo returns a blueprint with what may have been changed put back to what it was.
func (may inPlace) undo(now, was blueprint) blueprint {
	if len(now.pod.Containers) == 0 || len(was.pod.Containers) == 0 || now.pod.Containers[0].Name != was.pod.Containers[0].Name {
		return now
	}
	pod := now.pod.DeepCopy()
	first, before := &pod.Containers[0], was.pod.Containers[0]
	if may.anyone || may.image != "" && first.Image == may.image {
		first.Image = before.Image
	}
	may.undoAmounts(first.Resources.Requests, before.Resources.Requests, may.resources.Requests)
	may.undoAmounts(first.Resources.Limits, before.Resources.Limits, may.resources.Limits)
	now.pod = *pod
	return now
}

func (may inPlace) undoAmounts(now, was, asked corev1.ResourceList) {
	for resourceName, amount := range now {
		before, had := was[resourceName]
		if had && may.amount(resourceName, amount, asked) {
			now[resourceName] = before
		}
	}
}

func (may inPlace) amount(of corev1.ResourceName, amount resource.Quantity, asked corev1.ResourceList) bool {
	if may.anyone {
		return of == corev1.ResourceCPU
	}
	want, ok := asked[of]
	return ok && want.Cmp(amount) == 0
}

// userOf stands for the claim of somebody who has no object: they may have what they got, of the pool that they got it of, and
// when they asked for it is not known.
func (j *judging) userOf(o owner) *object[claimState] {
	state := claimState{pool: j.now.pool, ready: true, wants: anyNumber, may: inPlace{anyone: true}}
	if j.prev != nil {
		if pool, ok := j.prev.state.controller(); ok && pool.isPool() {
			state.pool = pool.name
		}
	}
	return &object[claimState]{uid: o.uid, namespace: j.sandbox.namespace, name: o.name, line: timeline[claimState]{entries: []entry[claimState]{{state: state}}}}
}

// skew is by how much the clocks of a cluster may differ.
const skew = 2 * time.Second

// askedAfter: whoever has no object that could be older than an update took the Sandbox surely after it, by their own clock.
func (j *judging) askedAfter(since change) bool {
	o, ok := j.now.owner(j.p.claim)
	at, err := time.Parse(time.RFC3339, j.now.taken)
	return ok && o.isUser() && err == nil && since.exact() && at.After(since.seen.Add(skew))
}

// anyNumber of Sandboxes is what a user of E2B may have.
const anyNumber = -1

// mayHold is how many Sandboxes a claim may have; agent-sandbox's have one.
func (s claimState) mayHold() int {
	if s.wants == 0 {
		return 1
	}
	return s.wants
}

// recycled: the pool of the Sandbox has what was used come back, just before the bind.
func (j *judging) recycled() bool {
	e, ok := j.h.pools[name{j.bind.Namespace, j.bind.Pool}].before(j.p.rv)
	if !ok {
		return false
	}
	template, ok := j.h.templates[name{j.bind.Namespace, e.state.template}].before(j.p.rv)
	return e.state.recycles || ok && template.state.recycles
}

func sameTemplate(a, b templateState) bool {
	return a.uid == b.uid && sameContent(a.member, b.member) && a.recycles == b.recycles && a.err == nil && b.err == nil
}

// setTemplate reports whether a template is a SandboxSet, which comes and goes with its pool.
func (n name) setTemplate() bool { return strings.HasPrefix(n.name, setTemplates) }

// isSandbox: whatever kind of Sandbox controls a Pod.
func (o owner) isSandbox() bool {
	return o.controller && o.kind == "Sandbox" && slices.Contains([]string{groupCore, groupKruise}, o.group)
}

// addPool adds a SandboxSet as the template that it also is.
func (h *History) addPool(e Event) {
	if !isKruise(e.Object) {
		addNamed(h, h.pools, e, poolOf, samePool)
		return
	}
	addNamed(h, h.pools, e, kruisePoolOf, samePool)
	template := e
	template.Object = e.Object.DeepCopy()
	template.Object.SetName(setTemplates + e.Object.GetName())
	addNamed(h, h.templates, template, h.templateOf, sameTemplate)
}

func uidOfTemplate(s templateState) types.UID { return s.uid }

func (h *History) templatesThat(are func(name) bool) map[name]*timeline[templateState] {
	out := map[name]*timeline[templateState]{}
	for key, line := range h.templates {
		if are(key) {
			out[key] = line
		}
	}
	return out
}
