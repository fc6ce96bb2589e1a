package kruise

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/revision"
	"github.com/freshbind/freshbind/internal/settings"
)

// blueprintPaths are the fields of a spec that a repair rewrites. The metadata of the Pod is
// what the claim wrote, too.
var blueprintPaths = [][]string{{"template", "spec"}, {"volumeClaimTemplates"}, {"persistentContents"}, {"runtimes"}, {"pauseStrategy"}}

// repair returns what a cold start, about to be created, has to be rewritten to; nil for
// nothing. The E2B server asks once only, and goes on with what the API server answers
// (createSandbox); it writes no template-hash, and none is written here. A birth stays as it
// is, or is refused: by its template-hash the platform's own rolling would replace it. Nor
// is there anything to rewrite in what refers to a template: its content is read later.
func (p *Platform) repair(ctx context.Context, sandbox *unstructured.Unstructured, f platform.Facts, objs stored) (*platform.Repair, error) {
	if p.RepairOff || objs.set == nil || !isColdStart(sandbox) || settings.Pool(objs.set.GetAnnotations()).RefusesRepair() {
		return nil, nil
	}
	// A field is written into what is there.
	_, hasPod, err := unstructured.NestedMap(sandbox.Object, "spec", "template", "spec")
	if !hasPod || err != nil || templateRef(objs.set) != "" {
		return nil, nil
	}
	found, err := freshness.RepairWithin(f.Snapshot, revision.NewBudget(freshness.MaxWork, ctx.Err))
	if found == nil || err != nil {
		return nil, err
	}
	spec, _ := carried(objs.set, sandbox, objs.asksCold()).Object["spec"].(map[string]any)
	return &platform.Repair{From: found.From, To: found.To, Fields: platform.Rewritten(sandbox, spec, blueprintPaths...)}, nil
}
