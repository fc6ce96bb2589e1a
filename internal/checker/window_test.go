package checker

import (
	"testing"

	"github.com/freshbind/freshbind/test/builders"
)

// setImage exchanges what the member's Pod runs.
func (s *scene) setImage(image string) {
	s.pod = s.mod(builders.PodFrom(s.pod).Set([]any{map[string]any{"name": "c", "image": image}}, "spec", "containers"))
}

func (s *scene) nodeReady(status string) {
	s.mod(makeNode("node", readiness(status)))
}

func readiness(status string) map[string]any {
	return map[string]any{"status": map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": status}}}}
}

func chosen(s *scene) {
	s.create("c1")
	s.choose()
}

// What was wrong for a part of the time in which the bind can have been admitted is nobody's fault, whether that is its
// beginning, its end, or both with a time between in which all was well. What was wrong all the while is.
func TestFaultsOfAPartOfTheWindow(t *testing.T) {
	vouch := func(s *scene, paths string) {
		s.pool = s.mod(builders.PoolFrom(s.pool).Annotation("freshbind.dev/injected-paths", paths))
	}
	injected := func(s *scene) {
		vouch(s, "podTemplate.spec.hostname")
		s.member = s.add(builders.MakeMember(s.pool, s.template).Name("python-m2").PodSpec("host", "hostname"))
		s.add(builders.MakePod(s.member).Stored("node"))
	}
	template := func(s *scene) *builders.Template { return builders.TemplateFrom(s.template) }
	run(t, map[string]story{
		"the Pod's image is exchanged": {strategy: "Recreate", want: []string{"c1: Raced"}, tell: func(s *scene) {
			chosen(s)
			s.setImage("odd:v1")
			s.bind()
		}},
		"the Pod's image was exchanged before": {strategy: "Recreate", want: []string{"c1: Stale"}, tell: func(s *scene) {
			s.setImage("odd:v1")
			chosen(s)
			s.bind()
		}},
		"the Pod's image is put right and exchanged again": {strategy: "Recreate", want: []string{"c1: Raced"}, tell: func(s *scene) {
			s.setImage("odd:v1")
			chosen(s)
			s.setImage("sandbox:v1")
			s.setImage("odd:v1")
			s.bind()
		}},
		"a Pod of the revision before comes in place of the other": {strategy: "Recreate", want: []string{"c1: Raced"}, tell: func(s *scene) {
			old := s.template
			s.update("sandbox:v2")
			s.birth("python-m2")
			chosen(s)
			s.del(builders.PodFrom(s.pod))
			s.add(builders.MakePod(builders.MakeMember(s.pool, old).Name("python-m2").UID(string(s.member.GetUID())).Obj()).UID("again").Stored("node"))
			s.bind()
		}},
		"the pool vouches no more": {strategy: "Recreate", want: []string{"c1: Raced"}, tell: func(s *scene) {
			injected(s)
			chosen(s)
			vouch(s, "")
			s.bind()
		}},
		"the pool had not vouched before": {strategy: "Recreate", want: []string{"c1: Stale"}, tell: func(s *scene) {
			injected(s)
			vouch(s, "")
			chosen(s)
			s.bind()
		}},
		"the template is deleted": {strategy: "Recreate", want: []string{"c1: Raced"}, tell: func(s *scene) {
			chosen(s)
			s.del(template(s))
			s.bind()
		}},
		"the template was deleted before": {strategy: "Recreate", want: []string{"c1: NotYet"}, tell: func(s *scene) {
			s.del(template(s))
			chosen(s)
			s.mod(builders.PoolFrom(s.pool).Annotation("a", "b"))
			s.bind()
		}},
		"the template comes and goes again": {strategy: "Recreate", want: []string{"c1: Raced"}, tell: func(s *scene) {
			s.del(template(s))
			chosen(s)
			s.add(template(s))
			s.del(template(s))
			s.bind()
		}},
		"the Pod was made and has failed": {want: []string{"c1: Raced"}, tell: func(s *scene) {
			s.member = s.add(builders.MakeMember(s.pool, s.template).Name("python-m2"))
			chosen(s)
			s.pod = s.add(builders.MakePod(s.member).Stored("node"))
			s.podPhase("Failed")
			s.bind()
		}},
	})
	// The order in which events of nodes arrive is another matter: their recording begins when there are some.
	for name, tc := range map[string]struct {
		before string
		during []string
		want   Class
	}{
		"the node returns":               {"False", []string{"True"}, Raced},
		"the node leaves":                {"True", []string{"False"}, Raced},
		"the node returns and leaves":    {"False", []string{"True", "False"}, Raced},
		"the node is away all the while": {"False", []string{"Unknown"}, DeadMember},
		"the node is there at both ends": {"True", []string{"False", "True"}, Fresh},
		"the node stays":                 {"True", nil, Fresh},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, "Recreate")
			s.node(readiness(tc.before))
			chosen(s)
			for _, status := range tc.during {
				s.nodeReady(status)
			}
			s.bind()
			if b := s.h.Judge().Binds[0]; b.Class != tc.want {
				t.Errorf("%s, want %s", b, tc.want)
			}
		})
	}
}
