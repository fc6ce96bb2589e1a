package checker_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/test/builders"
)

// A controller with a late cache starts a claim's sandbox from the template as it was
// before the claim came.
func ExampleHistory_Judge() {
	h := checker.NewHistory(checker.Options{})
	add := func(e checker.Event) {
		if err := h.Add(e); err != nil {
			panic(err)
		}
	}
	for _, resource := range checker.Resources() {
		add(checker.Event{Type: checker.Synced, Resource: resource, RV: "100"})
	}
	rv := 100
	store := func(kind checker.EventType, u *unstructured.Unstructured) {
		rv++
		u.SetResourceVersion(fmt.Sprint(rv))
		add(checker.Event{Type: kind, Object: u})
	}
	before := builders.MakeTemplate("ns", "python").Image("sandbox:v1").Obj()
	claim := builders.MakeClaim("ns", "c1").Obj()
	store(checker.Added, before.DeepCopy())
	store(checker.Added, builders.MakePool("ns", "python").Strategy("Recreate").Obj())
	store(checker.Modified, builders.TemplateFrom(before).Image("sandbox:v2").Obj())
	store(checker.Added, claim.DeepCopy())
	store(checker.Added, builders.MakeColdStart(claim, before).Obj())

	for _, bind := range h.Judge().Findings {
		fmt.Println(bind.Claim.Name, bind.Class)
	}
	// Output: c1 Stale
}
