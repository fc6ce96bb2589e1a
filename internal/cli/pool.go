package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freshbind/freshbind/internal/advice"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
)

// Pool is a pool and what its idle members are beside its template.
type Pool struct {
	Namespace string             `json:"namespace"`
	Name      string             `json:"name"`
	Template  string             `json:"template"`
	Strategy  freshness.Strategy `json:"strategy"`
	Mode      settings.Mode      `json:"mode"`
	// Replicas is how many members the pool is to have. The counts below leave
	// out members that are being deleted.
	Replicas int `json:"replicas"`
	Ready    int `json:"readyReplicas"`
	Updated  int `json:"updatedReplicas"`
	// UpdatedReady have been ready for the pool's min-ready-seconds.
	UpdatedReady int `json:"updatedReadyReplicas"`
	// Claimable are ready, shown to claims, and would be given to one now.
	Claimable int `json:"claimableReplicas"`
	Stale     int `json:"staleReplicas"`
	Unknown   int `json:"unknownReplicas"`
	Unusable  int `json:"unusableReplicas"`
	Hidden    int `json:"hiddenReplicas"`
	Leaving   int `json:"terminatingReplicas"`
	// Revision is the template-spec-hash in force, Number its number where it
	// was recorded.
	Revision string `json:"updateRevision,omitempty"`
	Number   int64  `json:"revision,omitempty"`
	State    State  `json:"state"`
	// Since is when the state began; zero when nobody wrote it down.
	Since   metav1.Time `json:"since,omitzero"`
	Message string      `json:"message,omitempty"`
	Admit   string      `json:"admit,omitempty"`
	// StalePolicy is what becomes of stale members.
	StalePolicy advice.StalePolicy `json:"staleAre"`

	// TemplateKind is that of platform.Pool.
	TemplateKind   string                     `json:"-"`
	Members        []Member                   `json:"-"`
	MaxUnavailable string                     `json:"-"`
	Deadline       time.Duration              `json:"-"`
	Object         *unstructured.Unstructured `json:"-"`
}

// left is how many members are not of the revision in force.
func (p *Pool) left() int { return p.Stale + p.Unknown }

// Member is an idle member of a pool.
type Member struct {
	Namespace string          `json:"namespace"`
	Name      string          `json:"name"`
	Pool      string          `json:"pool"`
	Class     freshness.Class `json:"class"`
	// Reason is the word of verdicts; Detail is for people.
	Reason freshness.Reason `json:"reason"`
	Detail string           `json:"detail,omitempty"`
	// Revision is what it was built from.
	Revision  string      `json:"revisionHash,omitempty"`
	Number    int64       `json:"revision,omitempty"`
	Ready     bool        `json:"ready"`
	Claimable bool        `json:"claimable"`
	Hidden    bool        `json:"hidden"`
	Leaving   bool        `json:"terminating"`
	Created   metav1.Time `json:"created"`

	// Labels are its Sandbox's.
	Labels labels.Set `json:"-"`

	readySince time.Time
	kind       schema.GroupKind
}

// Selection narrows down pools. Empty fields select all.
type Selection struct {
	Name, Template string
	// TemplateKind is that of platform.Pool; Template is of any kind where it is "".
	TemplateKind string
	Labels       labels.Selector
}

func (s Selection) takes(pool *unstructured.Unstructured, is platform.Pool) bool {
	return (s.Name == "" || s.Name == pool.GetName()) &&
		(s.Template == "" || s.Template == is.Template) &&
		(s.TemplateKind == "" || s.TemplateKind == is.TemplateKind) &&
		(s.Labels == nil || s.Labels.Matches(labels.Set(pool.GetLabels())))
}

// Pools judges the pools of a store, sorted by namespace and name.
func (j *Judge) Pools(ctx context.Context, which Selection) ([]Pool, error) {
	byPool := map[types.UID][]*unstructured.Unstructured{}
	for _, m := range all[*unstructured.Unstructured](j.store, members) {
		if len(j.objects.Claims(m)) == 0 {
			uid := types.UID("")
			if owner := j.objects.DescribeMember(m).Controller; owner.Kind == freshness.OwnedByPool {
				uid = types.UID(owner.UID)
			}
			byPool[uid] = append(byPool[uid], m)
		}
	}
	own, shared := all[*unstructured.Unstructured](j.store, templates), all[*unstructured.Unstructured](j.store, sharedTemplates)
	pods := all[*unstructured.Unstructured](j.store, memberPods)
	var out []Pool
	for key, pool := range all[*unstructured.Unstructured](j.store, pools) {
		is, from := j.objects.Pool(pool), own
		if !which.takes(pool, is) {
			continue
		}
		if is.TemplateKind != "" {
			from = shared
		}
		template := from[types.NamespacedName{Namespace: key.Namespace, Name: is.Template}]
		p, err := j.pool(ctx, pool, template, byPool[pool.GetUID()], pods)
		if err != nil {
			return nil, fmt.Errorf("pool %s: %w", key, err)
		}
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b Pool) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return out, nil
}

// Judge compares what a store holds.
type Judge struct {
	store    *Store
	objects  Objects
	platform platform.Inspector
	defaults settings.Defaults
	now      func() time.Time
}

// Judge returns a judge of the store as it is at each question.
func (c *Cluster) Judge(s *Store) *Judge {
	return &Judge{store: s, defaults: c.Defaults, now: c.Now, objects: c.Objects, platform: c.Judging(Sources{
		History: c.History(s.recorded()), Defaults: c.Defaults,
		Namespaces: func(_ context.Context, name string) (map[string]string, error) { return s.namespaces[name], nil },
	})}
}

func (j *Judge) pool(
	ctx context.Context, pool, template *unstructured.Unstructured, idle []*unstructured.Unstructured,
	pods map[types.NamespacedName]*unstructured.Unstructured,
) (Pool, error) {
	annotations, is := settings.Pool(pool.GetAnnotations()), j.objects.Pool(pool)
	p := Pool{
		Namespace: pool.GetNamespace(), Name: pool.GetName(), Template: is.Template, TemplateKind: is.TemplateKind,
		Mode: j.store.namespaces.mode(j.defaults, pool.GetNamespace(), annotations[settings.EnforcementKey]), Replicas: is.Replicas, Admit: annotations[settings.AdmitKey],
		MaxUnavailable: cmp.Or(annotations[settings.MaxUnavailableKey], settings.DefaultMaxUnavailable), Deadline: annotations.Deadline(),
		Object: pool,
	}
	inspection, err := j.platform.Inspect(ctx, pool, template)
	if err == nil && is.TemplateKind != "" {
		err = j.store.withheld[sharedTemplates]
	}
	if err != nil {
		p.State, p.Message = Unreadable, err.Error()
		return p, nil
	}
	p.Strategy, p.Revision = inspection.Strategy(), inspection.Revision()
	known := map[string]int64{}
	if template != nil {
		known = numbersFor(j.objects, j.store, template, p.Revision)
	}
	p.Number = known[p.Revision]
	rollout := j.rollout(&p)
	p.StalePolicy = rollout.StalePolicy()
	for _, sandbox := range idle {
		m, err := j.member(inspection, sandbox, pods[types.NamespacedName{Namespace: p.Namespace, Name: j.objects.PodOf(sandbox)}])
		if err != nil {
			return Pool{}, err
		}
		m.Pool, m.Number = p.Name, known[m.Revision]
		j.count(&p, &m, rollout)
		p.Members = append(p.Members, m)
	}
	slices.SortFunc(p.Members, func(a, b Member) int {
		return cmp.Or(a.Created.Compare(b.Created.Time), strings.Compare(a.Name, b.Name))
	})
	p.settle(template, inspection.Restarted())
	return p, nil
}

func (j *Judge) rollout(p *Pool) advice.Rollout {
	annotations := settings.Pool(p.Object.GetAnnotations())
	spec, _, _ := unstructured.NestedString(p.Object.Object, "spec", "updateStrategy", "type")
	return advice.Rollout{
		Annotation: annotations[settings.StrategyKey], Spec: spec, Default: j.defaults.Strategy, Floor: j.defaults.Floors.Strategy(j.store.namespaces[p.Namespace]),
		// The controller tells of rollouts only where it acts.
		Enforced: p.Mode == settings.Enforce || p.Mode == unknownMode && annotations[settings.RolloutStateKey] != "",
		AdmitAny: annotations.AdmitsAny(),
	}
}

// member judges one member by itself.
func (j *Judge) member(inspection *platform.Inspection, sandbox, pod *unstructured.Unstructured) (Member, error) {
	v, err := inspection.Object(sandbox, pod)
	if err != nil {
		return Member{}, err
	}
	is := j.objects.DescribeMember(sandbox)
	return Member{
		Namespace: sandbox.GetNamespace(), Name: sandbox.GetName(), Class: freshness.ClassOf(v), Reason: v.Reason,
		Detail: v.Detail, Revision: v.Found, Created: sandbox.GetCreationTimestamp(),
		Ready: !is.ReadySince.IsZero(), readySince: is.ReadySince, Hidden: !is.Shown, kind: sandbox.GroupVersionKind().GroupKind(),
		Leaving: sandbox.GetDeletionTimestamp() != nil, Labels: sandbox.GetLabels(),
	}, nil
}

// count adds a member to its pool's counts, and decides whether a claim that
// comes now could be given it.
func (j *Judge) count(p *Pool, m *Member, rollout advice.Rollout) {
	if m.Leaving {
		p.Leaving++
		return
	}
	add := func(to *int, is bool) {
		if is {
			*to++
		}
	}
	// The clock of the API server is known to the second, and may seem to be behind.
	available := m.Ready && max(0, j.now().Sub(m.readySince)) >= settings.Pool(p.Object.GetAnnotations()).MinReady()
	m.Claimable = m.Ready && !m.Hidden && p.serves(m.Class, rollout)
	add(&p.Updated, m.Class == freshness.Current)
	add(&p.UpdatedReady, m.Class == freshness.Current && available)
	add(&p.Stale, m.Class == freshness.Stale || m.Class == freshness.Former)
	add(&p.Unknown, m.Class == freshness.Unknown)
	add(&p.Unusable, m.Class == freshness.Unusable)
	add(&p.Ready, m.Ready)
	add(&p.Hidden, m.Hidden)
	add(&p.Claimable, m.Claimable)
}

// serves reports whether claims may be given members of a class.
func (p *Pool) serves(class freshness.Class, rollout advice.Rollout) bool {
	switch class {
	case freshness.Current:
		return true
	case freshness.Stale:
		return rollout.ServesStale()
	case freshness.Unknown:
		suspended := p.Object.GetAnnotations()[settings.AttributionKey]
		return rollout.ServesStale() || suspended != "" && suspended == p.Revision
	}
	return !rollout.Enforced
}
