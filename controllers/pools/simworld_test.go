package pools

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/members"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
)

// simulation is a cluster in which everything that the controller of pools has to
// cope with happens at random. Each step draws from a source of its own, so that
// leaving one out changes nothing else about the others.
type simulation struct {
	seed   uint64
	clock  *clocktesting.FakePassiveClock
	random *rand.Rand
	// calm: nothing fails any more, and nobody claims or edits anything.
	calm bool
	// story is what happened, when it is wanted.
	story *[]string

	// mu is held while one request is served: a plan makes several at once.
	mu sync.Mutex
	// epoch counts what happened, one after the other; requests of one plan share
	// one, and are brought into an order by what they are about.
	epoch     uint64
	batch     []happening
	logs      [simStreams][]happening
	pools     []*simPool
	templates []*simTemplate
	members   int
	reducer   *platform.Reducer

	budget int
	// pace is how fast members may be deleted, whoever leads, and deletes are when they
	// were.
	pace    Pace
	deletes []time.Time
	// over: more is in replacement than the budget has, because of a pool that had
	// stalled.
	over             bool
	failing          int
	leader, follower *process
	// dying: the leader is gone before its plan is carried out.
	dying bool
	// audited: nothing is enforced, so that nothing may be written. Only where the mode
	// changes at all: a pool that is audited gives back what it has of the budget, and
	// others may have it until the pool is looked at again, so that the budget holds
	// for each pool and not for all.
	audited, modeChanges bool
	// broken says how a promise was broken first, and which.
	broken, promise string
	stats           simStats
}

// simStats counts what a simulation went through.
type simStats struct{ steps, reconciles, deletes, patches, claims, leaders, edits, restarts, failures int }

func (s *simStats) add(o simStats) {
	s.steps, s.reconciles, s.deletes, s.patches = s.steps+o.steps, s.reconciles+o.reconciles, s.deletes+o.deletes, s.patches+o.patches
	s.claims, s.leaders, s.edits, s.restarts, s.failures = s.claims+o.claims, s.leaders+o.leaders, s.edits+o.edits, s.restarts+o.restarts, s.failures+o.failures
}

// stream is what caches are told of independently of the others.
type stream int

const (
	memberChanges stream = iota
	poolChanges
	templateChanges
	simStreams
)

// happening is a change of one object, and what an onlooker makes of it.
type happening struct {
	stream stream
	at     uint64
	object client.ObjectKey
	// member is one of the pool, as caches show it from then on, or for the last
	// time when it is gone.
	pool   types.UID
	member *members.Member
	gone   bool
	// stored is a pool or a template.
	stored *unstructured.Unstructured
	watch  func()
}

// simTemplate is a template with all of its versions.
type simTemplate struct {
	versions []*simVersion
	recorded []platform.Recorded
	// live is the version in force.
	live *simVersion
}

// simVersion is one version of a template.
type simVersion struct {
	template *unstructured.Unstructured
	hash     string
	// starts is how long its members take to get ready; never: none does.
	starts time.Duration
	never  bool
	specs  map[types.UID]*unstructured.Unstructured
}

// simPool is a pool, as it is stored.
type simPool struct {
	stored   *unstructured.Unstructured
	key      client.ObjectKey
	strategy freshness.Strategy
	template *simTemplate
	// born is the version that the platform's controller makes members of; it may
	// see a change late.
	born     *simVersion
	minReady time.Duration
	members  []*simMember
	account  onlooker
}

// simMember is one member, as it is stored.
type simMember struct {
	pool                   *simPool
	version                *simVersion
	name                   string
	uid                    types.UID
	number                 uint64
	at                     uint64
	created, ready, starts time.Time
	shown, leaving         bool
	// kept: nobody may delete it.
	kept bool
	// patches are how often it was hidden or shown since its pool last changed its
	// mind.
	patches   int
	available bool
	reduced   *members.Member
}

const simMembersMost = 1 << 24

func newSimulation(seed uint64, story *[]string) *simulation {
	s := &simulation{seed: seed, reducer: platform.NewReducer(agentsandbox.Objects{}), clock: clocktesting.NewFakePassiveClock(now), story: story}
	s.draw(0)
	s.budget, s.modeChanges = 1+s.random.IntN(12), seed%4 == 0
	s.failing = []int{0, 0, 2, 20}[s.random.IntN(4)]
	// The last one is slow enough for leaders to die before it allows another delete.
	slow := Pace{Every: time.Duration(1+s.random.IntN(20)) * time.Second, Burst: 1 + s.random.IntN(2), Clock: s.clock}
	s.pace = []Pace{{}, PaceOf(s.budget, s.clock), slow}[s.random.IntN(3)]
	for i := range 1 + s.random.IntN(2) {
		t := &simTemplate{}
		s.templates = append(s.templates, t)
		s.edit(t, fmt.Sprintf("t%d", i))
	}
	for i := range 1 + s.random.IntN(5) {
		s.addPool(fmt.Sprintf("p%d", i))
	}
	s.leader, s.follower = s.newProcess(), s.newProcess()
	s.leader.lead()
	return s
}

// draw has a step draw from its own source.
func (s *simulation) draw(step uint64) {
	s.random = rand.New(rand.NewPCG(s.seed, step))
}

// chance decides about one of several requests that are made at once, whatever
// their order.
func (s *simulation) chance(percent int, what string, number uint64) bool {
	h := s.seed*0x9e3779b97f4a7c15 ^ s.epoch*0xbf58476d1ce4e5b9 ^ number*0x94d049bb133111eb
	for _, c := range what {
		h = (h ^ uint64(c)) * 0x100000001b3
	}
	h ^= h >> 31
	h *= 0x7fb5d329728ea185
	h ^= h >> 27
	return !s.calm && int(h%100) < percent
}

func (s *simulation) logf(format string, args ...any) {
	if s.story != nil {
		*s.story = append(*s.story, fmt.Sprintf("%9s  ", s.clock.Now().Sub(now).Round(time.Millisecond))+fmt.Sprintf(format, args...))
	}
}

// happens notes a change; end shows it.
func (s *simulation) happens(h happening) { s.batch = append(s.batch, h) }

// end ends what happened at the same time, and brings it into an order.
func (s *simulation) end() {
	slices.SortStableFunc(s.batch, func(a, b happening) int { return cmp.Compare(a.at, b.at) })
	for _, h := range s.batch {
		if h.watch != nil {
			h.watch()
		}
		h.watch = nil
		s.logs[h.stream] = append(s.logs[h.stream], h)
	}
	s.batch = s.batch[:0]
	s.epoch++
}

// version is what a change of an object makes of its resourceVersion.
func (s *simulation) version(number uint64) uint64 { return (s.epoch+1)*simMembersMost + number }

// edit gives a template its next version, or an older one again.
func (s *simulation) edit(t *simTemplate, name string) {
	s.stats.edits++
	next := &simVersion{starts: time.Duration(s.random.IntN(20_000)) * time.Millisecond, specs: map[types.UID]*unstructured.Unstructured{}}
	next.never = !s.calm && len(t.versions) > 0 && s.random.IntN(5) == 0
	image := fmt.Sprintf("%s:v%d", name, len(t.versions)+1)
	if len(t.versions) > 1 && s.random.IntN(4) == 0 {
		was := t.versions[len(t.versions)-2]
		image, next.never = imageOf(was.template), was.never
	}
	next.template = builders.MakeTemplate("ns", name).Image(image).Generation(int64(len(t.versions) + 1)).RV(int64(s.epoch) + 1).Obj()
	rendered, err := agentsandbox.RenderMember(next.template)
	if err != nil {
		panic(err)
	}
	next.hash = rendered.Hash()
	for _, known := range t.recorded {
		if known.Hash == next.hash {
			rendered = known.Rendered
		}
	}
	t.recorded = slices.DeleteFunc(slices.Clone(t.recorded), func(r platform.Recorded) bool { return r.Hash == next.hash })
	t.recorded = append([]platform.Recorded{{Hash: next.hash, Template: next.template, Rendered: rendered}}, t.recorded...)
	t.versions, t.live = append(t.versions, next), next
	s.logf("template %s is edited: %s, which takes %s to start, never: %t", name, image, next.starts, next.never)
	s.happens(happening{stream: templateChanges, at: s.version(0), object: client.ObjectKeyFromObject(next.template), stored: next.template, watch: func() {
		for _, pool := range s.pools {
			if pool.template == t {
				pool.changes()
				pool.account.trim(pool)
			}
		}
	}})
	s.end()
}

func imageOf(template *unstructured.Unstructured) string {
	containers, _, _ := unstructured.NestedSlice(template.Object, "spec", "podTemplate", "spec", "containers")
	return containers[0].(map[string]any)["image"].(string)
}

func (s *simulation) addPool(name string) {
	p := &simPool{strategy: []freshness.Strategy{freshness.RollingUpdate, freshness.RollingUpdate, freshness.Recreate, freshness.OnReplenish}[s.random.IntN(4)]}
	p.template = s.templates[s.random.IntN(len(s.templates))]
	p.born = p.template.live
	p.minReady = []time.Duration{0, 0, 3 * time.Second}[s.random.IntN(3)]
	b := builders.MakePool("ns", name).Template(p.template.live.template.GetName()).Replicas(int64(1+s.random.IntN(12))).
		Strategy("OnReplenish").Annotation("freshbind.dev/rollout-strategy", string(p.strategy)).
		Annotation("freshbind.dev/max-unavailable", []string{"1", "2", "25%", "100%"}[s.random.IntN(4)]).
		Annotation("freshbind.dev/progress-deadline", "90s").
		Annotation("freshbind.dev/min-ready-seconds", strconv.Itoa(int(p.minReady/time.Second)))
	p.stored = b.RV(1).Obj()
	p.key = client.ObjectKeyFromObject(p.stored)
	s.pools = append(s.pools, p)
	s.logf("pool %s has %d replicas of %s under %s, max-unavailable %s, min-ready %s", name, p.replicas(),
		p.born.template.GetName(), p.strategy, p.stored.GetAnnotations()["freshbind.dev/max-unavailable"], p.minReady)
	s.store(p, p.stored)
	s.end()
	for range p.replicas() {
		m := s.bear(p)
		m.ready = s.clock.Now().Truncate(time.Second)
		s.written(m, nil)
		s.end()
	}
	s.settleAvailability()
}

func (p *simPool) replicas() int { return agentsandbox.Replicas(p.stored) }
func (p *simPool) paused() bool  { return p.stored.GetAnnotations()["freshbind.dev/paused"] == "true" }
func (p *simPool) admit() string { return p.stored.GetAnnotations()[settings.AdmitKey] }

// changes has it count anew how often its members are hidden and shown.
func (p *simPool) changes() {
	for _, m := range p.members {
		m.patches = 0
	}
}

// store makes that the pool.
func (s *simulation) store(p *simPool, next *unstructured.Unstructured) {
	before := p.stored
	next.SetResourceVersion(strconv.FormatUint(s.version(0), 10))
	p.stored = next
	s.happens(happening{stream: poolChanges, at: s.version(0), object: p.key, stored: next, watch: func() {
		if before.GetAnnotations()[settings.AdmitKey] != next.GetAnnotations()[settings.AdmitKey] {
			p.changes()
		}
		if restarted := restartOf(before) != restartOf(next); restarted || agentsandbox.TemplateOf(before) != agentsandbox.TemplateOf(next) {
			p.changes()
			p.account.trim(p)
		}
		p.account.trim(p)
	}})
}

// bear makes a member.
func (s *simulation) bear(p *simPool) *simMember {
	s.members++
	m := &simMember{
		pool: p, version: p.born, name: fmt.Sprintf("%s-%d", p.key.Name, s.members), number: uint64(s.members),
		created: s.clock.Now().Truncate(time.Second), shown: true,
	}
	m.uid = types.UID("uid-" + m.name)
	m.starts = s.clock.Now().Add(m.version.starts/2 + time.Duration(s.random.Int64N(int64(m.version.starts)+1)))
	if m.version.never || !s.calm && s.random.IntN(30) == 0 {
		m.starts = time.Time{}
	}
	p.members = append(p.members, m)
	s.written(m, nil)
	return m
}

// written notes that a member is another version of itself now.
func (s *simulation) written(m *simMember, watch func()) {
	m.at = s.version(m.number)
	m.reduced = s.reduce(m)
	s.happens(happening{at: m.at, object: client.ObjectKey{Namespace: "ns", Name: m.name}, pool: m.pool.stored.GetUID(), member: m.reduced, watch: watch})
}

// gone notes that a member left its pool: deleted, or bound.
func (s *simulation) gone(m *simMember, watch func()) {
	p := m.pool
	p.members = slices.DeleteFunc(slices.Clone(p.members), func(o *simMember) bool { return o == m })
	s.happens(happening{at: s.version(m.number), object: client.ObjectKey{Namespace: "ns", Name: m.name}, pool: p.stored.GetUID(), member: m.reduced, gone: true, watch: watch})
}

func (s *simulation) reduce(m *simMember) *members.Member {
	pool := m.pool.stored
	like := m.version.specs[pool.GetUID()]
	if like == nil {
		like = builders.MakeMember(pool, m.version.template).Name("like").Label(settings.StampKey, m.version.hash).
			Annotation(settings.CreatedByKey, settings.CreatedByPool).Ready(true).Obj()
		m.version.specs[pool.GetUID()] = like
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": like.Object["apiVersion"], "kind": like.Object["kind"], "spec": like.Object["spec"],
		"metadata": map[string]any{
			"namespace": "ns", "name": m.name, "uid": string(m.uid), "generation": int64(1),
			"annotations":       like.Object["metadata"].(map[string]any)["annotations"],
			"ownerReferences":   like.Object["metadata"].(map[string]any)["ownerReferences"],
			"labels":            like.Object["metadata"].(map[string]any)["labels"],
			"resourceVersion":   strconv.FormatUint(m.at, 10),
			"creationTimestamp": m.created.UTC().Format(time.RFC3339),
		},
	}}
	if !m.shown {
		labels := u.GetLabels()
		delete(labels, agentsandbox.TemplateRefHashLabel)
		u.SetLabels(labels)
	}
	if m.leaving {
		deleted := metav1.NewTime(m.created)
		u.SetDeletionTimestamp(&deleted)
	}
	if !m.ready.IsZero() {
		u.Object["status"] = map[string]any{"conditions": []any{
			map[string]any{"type": "Ready", "status": "True", "lastTransitionTime": m.ready.UTC().Format(time.RFC3339)},
		}}
	}
	return s.reducer.Member(u, m.reduced)
}

// restartOf is when a pool asked for a restart; "" when it did not.
func restartOf(pool *unstructured.Unstructured) string {
	return pool.GetAnnotations()["freshbind.dev/restarted-at"]
}

// restarted reports whether the pool asked for a restart since the member was born.
func (m *simMember) restarted() bool {
	at, err := time.Parse(time.RFC3339, restartOf(m.pool.stored))
	return err == nil && !m.created.After(at)
}

// current reports whether a member is of the revision in force.
func (m *simMember) current() bool {
	return !m.restarted() && m.version.template.GetName() == agentsandbox.TemplateOf(m.pool.stored) && m.version.hash == m.pool.template.live.hash
}
