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
var blueprintPaths = [][]string{{"template", "spec"}, {"templateRef"}, {"volumeClaimTemplates"}, {"persistentContents"}, {"runtimes"}, {"pauseStrategy"}}

// repair returns what a cold start, about to be created, has to be rewritten to; nil for
// nothing. The E2B server asks once only, and goes on with what the API server answers
// (createSandbox); it writes no template-hash, and none is written here. A birth stays as it
// is, or is refused: by its template-hash the platform's own rolling would replace it.
//
// What refers to a template can be of an older SandboxSet, which named another one. There is
// nothing in it to rewrite for an edit of the template itself: its Pod is built later, of
// what the template says then (GetTemplateSpec). It stays as it is, too, where one of both
// refers to a template and the other says all itself: claims write into the latter.
func (p *Platform) repair(ctx context.Context, sandbox *unstructured.Unstructured, f platform.Facts, objs stored) (*platform.Repair, error) {
	if p.RepairOff || objs.set == nil || settings.Pool(objs.set.GetAnnotations()).RefusesRepair() {
		return nil, nil
	}
	refers := templateRef(sandbox) != ""
	// A field is written into what is there.
	_, hasPod, err := unstructured.NestedMap(sandbox.Object, "spec", "template", "spec")
	if hasPod == refers || err != nil || objs.refers() != refers {
		return nil, nil
	}
	found, err := freshness.RepairWithin(f.Snapshot, revision.NewBudget(freshness.MaxWork, ctx.Err))
	if found == nil || err != nil {
		return nil, err
	}
	spec, _ := carried(objs.set, sandbox, objs.asksCold()).Object["spec"].(map[string]any)
	return &platform.Repair{From: found.From, To: found.To, Fields: platform.Rewritten(sandbox, spec, blueprintPaths...)}, nil
}

// withOwnContents compares a cold start that refers to a template with the SandboxSet by what
// both say themselves, and the SandboxSet did before: the template's content does not count.
func (p *Platform) withOwnContents(ctx context.Context, f platform.Facts, sandbox, set *unstructured.Unstructured) (platform.Facts, error) {
	content, err := contentOf(sandbox)
	if err != nil {
		return f, err
	}
	inForce, err := contentOf(set)
	if err != nil {
		return f, err
	}
	recorded, err := p.revisions(ctx, set)
	if err != nil {
		return f, err
	}
	f.Template = &freshness.Template{Name: set.GetName(), Hash: inForce.Hash(), Content: inForce}
	f.Member.Template, f.Member.Content, f.Member.Proposed, f.Known = "", content, content, nil
	for _, r := range recorded {
		f.Known = append(f.Known, freshness.Known{Hash: r.Hash, Content: r.Rendered})
	}
	return f, nil
}
