package integration

import (
	"fmt"
	"os"
	"regexp"
	"testing"

	"github.com/freshbind/freshbind/test/fixture"
	"github.com/freshbind/freshbind/test/scenario"
)

// With named namespaces Freshbind works in these, two of them so that caches are
// put together of parts, and watches nothing in others.
func TestNamedNamespacesOnly(t *testing.T) {
	t.Parallel()
	const here, there = "named-a", "named-b"
	w := ownWorld(t, scenario.WorldOptions{Guard: fixture.Options{Args: []string{configured(t, fmt.Sprintf("namespaces: [%s, %s]\n", here, there))}}})
	for _, name := range []string{here, there} {
		ns, err := scenario.CreateNamespace(t.Context(), w.Cluster.Config(), w.Version, name, scenario.Enforce())
		if err != nil {
			t.Fatal(err)
		}
		s := &stage{ns, t, w}
		s.must(ns.WaitGuarded(t.Context(), within))
		// Nobody but Freshbind rolls this.
		p := s.rolling(2)
		s.image(p, "sandbox:v2")
		s.full(p, "sandbox:v2")
		s.claim(p, scenario.Names("c", 2)...)
		s.fresh(2)
	}
	log, err := os.ReadFile(w.Guard.LogPath())
	if err != nil {
		t.Fatal(err)
	}
	if forbidden := regexp.MustCompile(`(?m)^.*is forbidden.*$`).Find(log); forbidden != nil {
		t.Errorf("Freshbind asks for more than it may: %s", forbidden)
	}
}
