package checker

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/test/builders"
)

const ns = "default"

// recording writes a history one stored version at a time: every step raises the resourceVersion by one and the clock by 100 ms.
type recording struct {
	t      testing.TB
	h      *History
	events []Event
	rv     int64
	now    time.Time
	by     func() string // who writes, where that is known
}

// newRecording starts a recording in an empty cluster, at resourceVersion 100.
func newRecording(t testing.TB) *recording {
	x := unsyncedRecording(t)
	x.sync()
	return x
}

func unsyncedRecording(t testing.TB) *recording {
	return &recording{t: t, h: NewHistory(Options{}), rv: 99, now: time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)}
}

func (x *recording) next() int64 {
	x.rv++
	x.now = x.now.Add(100 * time.Millisecond)
	return x.rv
}

func (x *recording) wait(d time.Duration) { x.now = x.now.Add(d) }

func (x *recording) event(e Event) {
	x.t.Helper()
	e.SeenAt = x.now
	if x.by != nil {
		e.By = x.by()
	}
	x.events = append(x.events, e)
	if err := x.h.Add(e); err != nil {
		x.t.Fatalf("add event: %v", err)
	}
}

func (x *recording) sync() {
	x.next()
	for _, r := range Resources() {
		x.event(Event{Type: Synced, Resource: r, RV: x.at()})
	}
}

// progress says that every watch has delivered everything so far.
func (x *recording) progress() {
	for _, r := range Resources() {
		x.event(Event{Type: Progress, Resource: r, RV: x.at()})
	}
}

func (x *recording) at() RV { return RV(fmt.Sprint(x.rv)) }

// stored is any builder.
type stored interface {
	Obj() *unstructured.Unstructured
}

func (x *recording) store(kind EventType, o stored) *unstructured.Unstructured {
	x.t.Helper()
	u := o.Obj()
	u.SetResourceVersion(fmt.Sprint(x.next()))
	x.event(Event{Type: kind, Object: u})
	return u
}

func (x *recording) add(o stored) *unstructured.Unstructured  { return x.store(Added, o) }
func (x *recording) mod(o stored) *unstructured.Unstructured  { return x.store(Modified, o) }
func (x *recording) del(o stored) *unstructured.Unstructured  { return x.store(Deleted, o) }
func (x *recording) list(o stored) *unstructured.Unstructured { return x.store(Listed, o) }

// scene is the usual cast: a template, a pool of it with a strategy, and one ready member with its Pod.
type scene struct {
	*recording
	template, pool, member, pod, claim *unstructured.Unstructured
}

func newScene(t testing.TB, strategy string) *scene {
	return castScene(newRecording(t), builders.V1Beta1, strategy)
}

func castScene(x *recording, version, strategy string) *scene {
	s := &scene{recording: x}
	s.template = x.add(builders.MakeTemplate(ns, "python").APIVersion(version))
	pool := builders.MakePool(ns, "python").APIVersion(version)
	if strategy != "" {
		pool.Strategy(strategy)
	}
	s.pool = x.add(pool)
	s.birth("python-m1")
	return s
}

// birth makes a ready member of the template as it is now.
func (s *scene) birth(name string) *unstructured.Unstructured {
	s.member = s.add(builders.MakeMember(s.pool, s.template).Name(name))
	s.pod = s.add(builders.MakePod(s.member).Stored("node"))
	s.member = s.mod(builders.SandboxFrom(s.member).Ready(true))
	return s.member
}

// update stores the next version of the template.
func (s *scene) update(image string) {
	s.template = s.mod(builders.TemplateFrom(s.template).Image(image))
}

func (s *scene) create(name string) {
	s.claim = s.add(builders.MakeClaim(ns, name))
}

// choose writes the member's name on the claim.
func (s *scene) choose() {
	s.claim = s.mod(builders.ClaimFrom(s.claim).Names(s.member.GetName()))
}

// bind hands the member to the claim.
func (s *scene) bind() *unstructured.Unstructured {
	s.member = s.mod(builders.Bound(s.member, s.claim, s.template))
	return s.member
}

func (s *scene) serve() {
	s.choose()
	s.bind()
	s.claim = s.mod(builders.ClaimFrom(s.claim).Ready(true))
}

func (s *scene) podPhase(phase corev1.PodPhase) {
	s.pod = s.mod(builders.PodFrom(s.pod).Phase(phase))
}

// verdicts is what the judge says about each bind, as "claim: classes", worst first.
func (x *recording) verdicts() []string {
	var out []string
	for _, b := range x.h.Judge().Binds {
		line := b.Claim.Name + ":"
		for _, f := range b.Findings {
			line += " " + string(f.Class)
		}
		if len(b.Findings) == 0 {
			line += " " + string(b.Class)
		}
		out = append(out, line)
	}
	return out
}

func (x *recording) dump() string {
	text := ""
	for _, b := range x.h.Judge().Binds {
		text += b.String() + "\n"
	}
	return text
}
