package checker

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/freshbind/freshbind/test/builders"
)

// gap loses what change writes to a resource, and lists the objects that are left.
func (s *scene) gap(r Resource, change func() []stored) {
	s.t.Helper()
	after := s.at()
	left := change()
	s.next()
	s.event(Event{Type: Gap, Resource: r, After: after, RV: s.at()})
	for _, o := range left {
		s.event(Event{Type: Listed, Object: o.Obj()})
	}
	s.event(Event{Type: Synced, Resource: r, RV: s.at()})
}

// unseen raises the resourceVersion for a version that the recording misses.
func (s *scene) unseen() int64 { return s.next() }

func TestLostEvents(t *testing.T) {
	loseUpdate := func(s *scene) {
		s.gap(Templates, func() []stored {
			b := builders.TemplateFrom(s.template).Image("sandbox:v2").RV(s.unseen())
			s.template = b.Obj()
			return []stored{b}
		})
	}
	run(t, map[string]story{
		"an update was lost, the claim is younger": {strategy: "Recreate", want: []string{"c1: Stale"}, tell: func(s *scene) {
			loseUpdate(s)
			s.create("c1")
			s.serve()
		}},
		"an update was lost, the choice is older": {strategy: "Recreate", want: []string{"c1: Raced"}, tell: func(s *scene) {
			s.create("c1")
			s.choose()
			loseUpdate(s)
			s.bind()
		}},
		"an update was lost around the choice": {strategy: "Recreate", want: []string{"c1: Unjudged"}, tell: func(s *scene) {
			s.create("c1")
			s.gap(Templates, func() []stored {
				s.choose()
				b := builders.TemplateFrom(s.template).Image("sandbox:v2").RV(s.unseen())
				s.template = b.Obj()
				return []stored{b}
			})
			s.bind()
		}},
		"a bind while events of the template were lost, which then was another": {strategy: "Recreate", want: []string{"c1: Unjudged"},
			tell: func(s *scene) {
				s.create("c1")
				s.gap(Templates, func() []stored {
					s.serve()
					return []stored{builders.TemplateFrom(s.template).Image("sandbox:v2").RV(s.unseen())}
				})
			}},
		"a bind while events were lost that were none": {strategy: "Recreate", want: []string{"c1: Fresh"}, tell: func(s *scene) {
			s.create("c1")
			s.gap(Templates, func() []stored {
				s.serve()
				return []stored{builders.TemplateFrom(s.template)}
			})
		}},
		"the bind itself was lost": {strategy: "Recreate", want: []string{"c1: Unjudged"}, tell: func(s *scene) {
			s.create("c1")
			s.choose()
			s.gap(Sandboxes, func() []stored {
				return []stored{builders.Bound(s.member, s.claim, s.template).RV(s.unseen())}
			})
		}},
		"a cold start was lost": {strategy: "Recreate", want: []string{"c1: Unjudged"}, tell: func(s *scene) {
			s.create("c1")
			s.gap(Sandboxes, func() []stored {
				return []stored{builders.SandboxFrom(s.member), builders.MakeColdStart(s.claim, s.template).RV(s.unseen())}
			})
		}},
		"the Pod was lost": {strategy: "Recreate", want: []string{"c1: DeadMember"}, tell: func(s *scene) {
			s.gap(Pods, func() []stored { return nil })
			s.create("c1")
			s.serve()
		}},
		"the template was lost and came back as another": {strategy: "Recreate", want: []string{"c1: Stale"}, tell: func(s *scene) {
			s.gap(Templates, func() []stored {
				b := builders.TemplateFrom(s.template).UID("second").Image("sandbox:v2").RV(s.unseen())
				s.template = b.Obj()
				return []stored{b}
			})
			s.create("c1")
			s.serve()
		}},
		"a bind while the events of a new template were lost": {strategy: "Recreate", want: []string{"c1: Unjudged"}, tell: func(s *scene) {
			s.pool = s.mod(builders.PoolFrom(s.pool).Template("node"))
			s.create("c1")
			s.gap(Templates, func() []stored {
				s.serve()
				return []stored{builders.TemplateFrom(s.template), builders.MakeTemplate(ns, "node").RV(s.unseen())}
			})
		}},
		"the choice was lost around the update": {strategy: "Recreate", want: []string{"c1: Unjudged"}, tell: func(s *scene) {
			s.create("c1")
			s.gap(Claims, func() []stored {
				s.update("sandbox:v2")
				b := builders.ClaimFrom(s.claim).Names(s.member.GetName()).RV(s.unseen())
				s.claim = b.Obj()
				return []stored{b}
			})
			s.bind()
		}},
		"a bind while the events of a template were lost that is gone after that": {strategy: "Recreate", want: []string{"c1: Unjudged"},
			tell: func(s *scene) {
				s.create("c1")
				s.gap(Templates, func() []stored {
					s.serve()
					return nil
				})
			}},
		"a LIST that shows a claim as it was is no write of its controller": {strategy: "Recreate", want: []string{"c1: Raced"}, tell: func(s *scene) {
			old := s.template
			s.create("c1")
			s.claim = s.mod(builders.ClaimFrom(s.claim).Ready(false))
			s.gap(Claims, func() []stored { return []stored{builders.ClaimFrom(s.claim)} })
			s.update("sandbox:v2")
			s.claim = s.mod(builders.ClaimFrom(s.claim).Annotation("nudge", "1"))
			startCold(s, old, nil)
		}},
		"the pool was never seen": {strategy: "Recreate", want: []string{"c1: Unjudged"}, tell: func(s *scene) {
			s.pool = builders.MakePool(ns, "unseen").Obj()
			s.birth("unseen-m1")
			s.claim = s.add(builders.MakeClaim(ns, "c1").Pool("unseen"))
			s.serve()
		}},
		"the claim was never seen": {strategy: "Recreate", want: []string{"c1: Unjudged"}, tell: func(s *scene) {
			s.claim = builders.MakeClaim(ns, "c1").Obj()
			s.bind()
		}},
	})
}

// What a LIST returned is known from then on; what was before it is not.
func TestStartOfTheRecording(t *testing.T) {
	cases := map[string]struct {
		tell func(s *scene)
		want []string
	}{
		"a claim after the start, a member older than the template": {want: []string{"c1: Stale NotYet"}, tell: func(s *scene) {
			s.sync()
			s.create("c1")
			s.serve()
		}},
		"a claim that was there already": {want: []string{"c1: Unjudged NotYet"}, tell: func(s *scene) {
			s.claim = s.list(builders.MakeClaim(ns, "c1"))
			s.sync()
			s.bind()
		}},
		"a choice after the start": {want: []string{"c1: Stale NotYet"}, tell: func(s *scene) {
			s.claim = s.list(builders.MakeClaim(ns, "c1"))
			s.sync()
			s.serve()
		}},
		"a sandbox that was bound already": {tell: func(s *scene) {
			s.claim = s.list(builders.MakeClaim(ns, "c1"))
			bound := builders.MakeMember(s.pool, s.template).Name("python-m2").Obj()
			s.list(builders.Bound(bound, s.claim, s.template))
			s.sync()
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := &scene{recording: unsyncedRecording(t)}
			old := builders.MakeTemplate(ns, "python").Image("sandbox:v0").Obj()
			s.pool = s.list(builders.MakePool(ns, "python").Strategy("Recreate"))
			s.member = s.list(builders.MakeMember(s.pool, old).Name("python-m1"))
			s.template = s.list(builders.MakeTemplate(ns, "python"))
			tc.tell(s)
			if diff := cmp.Diff(tc.want, s.verdicts()); diff != "" {
				t.Errorf("verdicts (-want,+got):\n%s\n%s", diff, s.dump())
			}
		})
	}
}

func TestBoundBeforeIsCountedApart(t *testing.T) {
	s := &scene{recording: unsyncedRecording(t)}
	s.template = s.list(builders.MakeTemplate(ns, "python"))
	s.pool = s.list(builders.MakePool(ns, "python"))
	s.claim = s.list(builders.MakeClaim(ns, "c1").Ready(true))
	s.list(builders.Bound(builders.MakeMember(s.pool, s.template).Name("python-m1").Obj(), s.claim, s.template))
	s.sync()
	got := s.h.Judge().Namespace(ns)
	want := Summary{Namespace: ns, Classes: map[Class]int{}, BoundBefore: 1}
	if diff := cmp.Diff(want, got, ignoreLatencies); diff != "" {
		t.Errorf("summary (-want,+got):\n%s", diff)
	}
}

func TestReportNamesLostEvents(t *testing.T) {
	s := newScene(t, "Recreate")
	after := s.at()
	s.gap(Pods, func() []stored { return []stored{builders.PodFrom(s.pod)} })
	want := []EventGap{{Resource: Pods, After: after, Until: s.at(), SeenAt: s.now}}
	if diff := cmp.Diff(want, s.h.Judge().EventGaps); diff != "" {
		t.Errorf("lost (-want,+got):\n%s", diff)
	}
}
