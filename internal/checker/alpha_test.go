package checker

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/freshbind/freshbind/test/builders"
)

// Claims of v1alpha1 (v0.4.6) name a template, and a pool at their choice.
func TestV1Alpha1Claims(t *testing.T) {
	cases := map[string]struct {
		tell func(s *scene)
		want []string
	}{
		"warm from the named pool": {want: []string{"c1: Fresh"}, tell: func(s *scene) {
			s.claim = s.add(builders.MakeClaimV1Alpha1(ns, "c1", "python", "python"))
			s.serve()
		}},
		"warm from the named pool, stale": {want: []string{"c1: Stale"}, tell: func(s *scene) {
			s.update("sandbox:v2")
			s.claim = s.add(builders.MakeClaimV1Alpha1(ns, "c1", "python", "python"))
			s.serve()
		}},
		"raced by the label that v0.4.6 writes": {want: []string{"c1: Raced"}, tell: func(s *scene) {
			s.claim = s.add(builders.MakeClaimV1Alpha1(ns, "c1", "python", "default"))
			s.choose()
			s.update("sandbox:v2")
			s.bind()
		}},
		"stale by the label that v0.4.6 writes": {want: []string{"c1: Stale"}, tell: func(s *scene) {
			s.claim = s.add(builders.MakeClaimV1Alpha1(ns, "c1", "python", "default"))
			s.update("sandbox:v2")
			s.choose()
			s.bind()
		}},
		"default takes any pool of the template": {want: []string{"c1: Fresh"}, tell: func(s *scene) {
			s.claim = s.add(builders.MakeClaimV1Alpha1(ns, "c1", "python", "default"))
			s.serve()
		}},
		"default, stale": {want: []string{"c1: Stale"}, tell: func(s *scene) {
			s.update("sandbox:v2")
			s.claim = s.add(builders.MakeClaimV1Alpha1(ns, "c1", "python", "default"))
			s.serve()
		}},
		"default, from a pool of another template": {want: []string{"c1: ForeignMember Stale"}, tell: func(s *scene) {
			s.add(builders.MakeTemplate(ns, "node").APIVersion(builders.V1Alpha1).Image("node:v1"))
			s.claim = s.add(builders.MakeClaimV1Alpha1(ns, "c1", "node", "default"))
			s.serve()
		}},
		"none wants no member": {want: []string{"c1: ForeignMember"}, tell: func(s *scene) {
			s.claim = s.add(builders.MakeClaimV1Alpha1(ns, "c1", "python", "none"))
			s.serve()
		}},
		"none starts cold": {want: []string{"c1: Fresh"}, tell: func(s *scene) {
			s.claim = s.add(builders.MakeClaimV1Alpha1(ns, "c1", "python", "none"))
			s.add(builders.MakeColdStart(s.claim, s.template))
		}},
		"none starts cold from an old template": {want: []string{"c1: Stale"}, tell: func(s *scene) {
			old := s.template
			s.update("sandbox:v2")
			s.claim = s.add(builders.MakeClaimV1Alpha1(ns, "c1", "python", "none"))
			s.add(builders.MakeColdStart(s.claim, old))
		}},
		"a named pool's claim starts cold from its own template, whatever the pool's": {want: []string{"c1: Fresh"}, tell: func(s *scene) {
			s.add(builders.MakeTemplate(ns, "node").APIVersion(builders.V1Alpha1).Image("node:v1"))
			s.pool = s.mod(builders.PoolFrom(s.pool).Template("node"))
			s.claim = s.add(builders.MakeClaimV1Alpha1(ns, "c1", "python", "python"))
			s.add(builders.MakeColdStart(s.claim, s.template))
		}},
		"a named pool's claim gets members of what the pool refers to now": {want: []string{"c1: Stale"}, tell: func(s *scene) {
			s.add(builders.MakeTemplate(ns, "node").APIVersion(builders.V1Alpha1).Image("node:v1"))
			s.pool = s.mod(builders.PoolFrom(s.pool).Template("node"))
			s.claim = s.add(builders.MakeClaimV1Alpha1(ns, "c1", "python", "python"))
			s.serve()
		}},
		"a named pool's claim starts cold from an old template of its own": {want: []string{"c1: Stale"}, tell: func(s *scene) {
			s.add(builders.MakeTemplate(ns, "node").APIVersion(builders.V1Alpha1).Image("node:v1"))
			s.pool = s.mod(builders.PoolFrom(s.pool).Template("node"))
			old := s.template
			s.update("sandbox:v2")
			s.claim = s.add(builders.MakeClaimV1Alpha1(ns, "c1", "python", "python"))
			s.add(builders.MakeColdStart(s.claim, old))
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := castScene(newRecording(t), builders.V1Alpha1, "Recreate")
			tc.tell(s)
			if diff := cmp.Diff(tc.want, s.verdicts()); diff != "" {
				t.Errorf("verdicts (-want,+got):\n%s\n%s", diff, s.dump())
			}
		})
	}
}
