package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
)

// Finding is what a claim's sandbox is beside what was in force for it. The set
// is closed.
type Finding string

const (
	// FindFresh: not older than what was in force when the claim was created.
	FindFresh Finding = "Fresh"
	// FindStale: older than what was in force when the claim was created.
	FindStale Finding = "Stale"
	// FindOlder: older than what is in force now; whether it was already when
	// the claim was created is not recorded.
	FindOlder Finding = "Older"
	// FindUnknown: equal to no revision that is recorded.
	FindUnknown Finding = "Unknown"
	// FindNothing: the claim has no sandbox.
	FindNothing Finding = "NoSandbox"
)

// ClaimStory is what can be told of a claim.
type ClaimStory struct {
	Namespace string        `json:"namespace"`
	Name      string        `json:"name"`
	UID       string        `json:"uid"`
	Created   metav1.Time   `json:"created"`
	Mode      settings.Mode `json:"mode"`
	Pool      string        `json:"pool,omitempty"`
	Template  string        `json:"template,omitempty"`
	Finding   Finding       `json:"finding"`
	Sandbox   string        `json:"sandbox,omitempty"`
	// Launch is warm or cold.
	Launch string      `json:"launch,omitempty"`
	Ready  metav1.Time `json:"ready,omitzero"`
	// Runs is what the sandbox was built from, InForce what is now, and AtCreation
	// what was when the claim was created: their template-spec-hashes.
	Runs       string `json:"runs,omitempty"`
	InForce    string `json:"inForce,omitempty"`
	AtCreation string `json:"inForceAtCreation,omitempty"`
	// Sure: AtCreation is not just likely.
	Sure bool `json:"inForceAtCreationIsSure,omitempty"`
	// PodRuns is set when its Pod was built from something else.
	PodRuns string `json:"podRuns,omitempty"`
	// RepairedFrom is the revision that its sandbox was rendered from, where that was
	// rewritten when it was created.
	RepairedFrom string `json:"repairedFrom,omitempty"`
	// Refusals are the oldest first.
	Refusals []Refusal `json:"refusals"`
	// Status is the claim's own words while it is not ready.
	Status string `json:"status,omitempty"`
	// Waits says how its pool is, for a claim without a sandbox.
	Waits string `json:"waits,omitempty"`

	numbers map[string]int64
}

// Refusal is a write that was refused, or would have been.
type Refusal struct {
	Time    metav1.MicroTime `json:"time"`
	Sandbox string           `json:"sandbox,omitempty"`
	Reason  string           `json:"reason"`
	Note    string           `json:"note"`
	Count   int32            `json:"count"`
}

// ExplainClaim reads everything about a claim.
func (c *Cluster) ExplainClaim(ctx context.Context, namespace, name string) (*ClaimStory, error) {
	claim, err := c.Get(ctx, c.Objects.Kinds().Claim.GroupResource(), namespace, name)
	if err != nil {
		return nil, err
	}
	s, err := c.Load(ctx, namespace)
	if err != nil {
		return nil, err
	}
	story := &ClaimStory{
		Namespace: namespace, Name: name, UID: string(claim.GetUID()), Created: claim.GetCreationTimestamp(),
		Finding: FindNothing, numbers: map[string]int64{},
	}
	history, err := c.demanded(ctx, s, claim, story)
	if err != nil {
		return nil, err
	}
	sandbox, err := c.heldBy(ctx, claim)
	if err != nil {
		return nil, err
	}
	if sandbox != nil {
		if err := c.describeSandbox(ctx, claim, sandbox, history, story); err != nil {
			return nil, err
		}
	}
	if story.Refusals, err = c.refusals(ctx, claim); err != nil {
		return nil, err
	}
	return story, nil
}

// demanded tells what the claim asked for, and returns its template's history.
func (c *Cluster) demanded(ctx context.Context, s *Store, claim *unstructured.Unstructured, story *ClaimStory) ([]Revision, error) {
	story.Pool, story.Template = c.Objects.Asked(claim)
	story.Status, story.Ready = readiness(claim)
	story.Mode = s.namespaces.mode(c.Defaults, story.Namespace, "")
	pool := ""
	if story.Pool != "" {
		found, err := c.Judge(s).Pools(ctx, Selection{Name: story.Pool})
		if err != nil {
			return nil, err
		}
		story.Waits = story.Pool + " does not exist"
		for _, p := range found {
			story.Mode, story.Template, story.InForce, pool = p.Mode, p.Template, p.Revision, p.Name
			story.Waits = fmt.Sprintf("%s: %d of %d members ready, %d claimable, %s", p.Name, p.Ready, p.Replicas, p.Claimable, p.Words())
		}
	}
	if story.Template == "" {
		return nil, nil
	}
	template, err := c.templateFor(ctx, story.Namespace, pool, story.Template)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	live, err := c.renderOf(template)
	if err != nil {
		return nil, err
	}
	if story.InForce == "" {
		story.InForce = live.Hash()
	}
	story.numbers = numbersFor(c.Objects, s, template, story.InForce)
	return c.Revisions(ctx, s, template)
}

// readiness returns since when a claim is ready, or what it says while it is
// not.
func readiness(claim *unstructured.Unstructured) (words string, since metav1.Time) {
	for _, condition := range list(claim, "status", "conditions") {
		if condition["type"] != "Ready" {
			continue
		}
		if condition["status"] == "True" {
			at, _ := condition["lastTransitionTime"].(string)
			if t, err := time.Parse(time.RFC3339, at); err == nil {
				since = metav1.NewTime(t)
			}
			return "", since
		}
		message, _ := condition["message"].(string)
		return message, metav1.Time{}
	}
	return "", metav1.Time{}
}

// heldBy returns the sandbox that a claim has; nil for none.
func (c *Cluster) heldBy(ctx context.Context, claim *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	its := func(sandbox *unstructured.Unstructured) bool {
		return slices.ContainsFunc(c.Objects.Claims(sandbox), func(o freshness.Owner) bool { return o.UID == string(claim.GetUID()) })
	}
	for _, name := range c.Objects.Holdings(claim) {
		sandbox, err := c.Get(ctx, c.Objects.Kinds().Member.GroupResource(), claim.GetNamespace(), name)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if its(sandbox) {
			return sandbox, nil
		}
	}
	selector := c.Objects.Held(claim)
	if selector == nil {
		return nil, nil
	}
	found, err := c.list(ctx, c.Objects.Kinds().Member.GroupResource(), client.InNamespace(claim.GetNamespace()), client.MatchingLabelsSelector{Selector: selector})
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(found, func(u unstructured.Unstructured) bool { return its(&u) }); i >= 0 {
		return &found[i], nil
	}
	return nil, nil
}

func (c *Cluster) describeSandbox(ctx context.Context, claim, sandbox *unstructured.Unstructured, history []Revision, story *ClaimStory) error {
	story.Sandbox, story.Launch, story.Waits = sandbox.GetName(), c.Objects.LaunchType(sandbox, claim), ""
	live, _ := c.live()
	stamp, err := live.SandboxRevision(ctx, sandbox)
	if err != nil {
		return err
	}
	story.Runs = stamp.Hash
	story.RepairedFrom, _, _ = platform.ParseRepaired(sandbox.GetAnnotations()[settings.RepairedKey])
	pod, err := live.Get(ctx, podResource, sandbox.GetNamespace(), c.Objects.PodOf(sandbox))
	if err != nil && !apierrors.IsForbidden(err) {
		return err
	}
	if pod != nil && c.Objects.MemberOf(pod) == sandbox.GetName() {
		ran, err := live.PodRevision(ctx, pod)
		if err != nil {
			return err
		}
		switch {
		case story.Runs == "":
			// It does not say what it runs in.
			story.Runs = ran.Hash
		case ran.Hash != story.Runs:
			story.PodRuns = ran.Hash
		}
	}
	story.find(history)
	return nil
}

// find compares what runs with what was in force.
func (s *ClaimStory) find(history []Revision) {
	then, sure, known := inForceAt(history, s.Created.Time)
	if known {
		s.AtCreation, s.Sure = then.Hash, sure
	}
	runs := s.Runs
	if s.PodRuns != "" {
		runs = s.PodRuns
	}
	built, recorded := byHash(history, runs)
	switch {
	case runs == s.InForce:
		s.Finding = FindFresh
	case !recorded:
		s.Finding = FindUnknown
	case !known:
		s.Finding = FindOlder
	case built.Number >= then.Number:
		s.Finding = FindFresh
	case !sure:
		s.Finding = FindOlder
	default:
		s.Finding = FindStale
	}
}

// regardingName selects the events of an object.
const regardingName = "regarding.name"

// refusals reads the events that tell of verdicts on the claim's binds.
func (c *Cluster) refusals(ctx context.Context, claim *unstructured.Unstructured) ([]Refusal, error) {
	var events eventsv1.EventList
	err := c.Client.List(ctx, &events, client.InNamespace(claim.GetNamespace()), client.MatchingFields{regardingName: claim.GetName()})
	if err != nil {
		return nil, fmt.Errorf("listing events of claim %s: %w", claim.GetName(), err)
	}
	out := []Refusal{}
	for i := range events.Items {
		e := &events.Items[i]
		kind := schema.FromAPIVersionAndKind(e.Regarding.APIVersion, e.Regarding.Kind).GroupKind()
		if kind != c.Objects.Kinds().Claim.GroupKind || e.Regarding.UID != claim.GetUID() || !slices.Contains(freshness.Reasons(), freshness.Reason(e.Reason)) {
			continue
		}
		r := Refusal{Time: e.EventTime, Reason: e.Reason, Note: e.Note, Count: 1}
		if e.Related != nil {
			r.Sandbox = e.Related.Name
		}
		if e.Series != nil {
			r.Count = e.Series.Count
		}
		out = append(out, r)
	}
	slices.SortStableFunc(out, func(a, b Refusal) int { return a.Time.Compare(b.Time.Time) })
	return out, nil
}
