package agentsandbox

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/revision"
	"github.com/freshbind/freshbind/internal/settings"
)

// blueprintPaths are the fields of a spec that a repair rewrites.
var blueprintPaths = [][]string{{"podTemplate", "spec"}, {"volumeClaimTemplates"}, {"service"}}

// repair returns what the sandbox, about to be created, has to be rewritten to;
// nil for nothing. No release compares a claim's sandbox with its template
// afterwards, whatever its cache still has, but for spec.podTemplate.metadata: that
// is written from the cached template again and again, and left to it here
// (sandboxclaim_controller.go, reconcileActive).
func (p *Platform) repair(ctx context.Context, sandbox *unstructured.Unstructured, f platform.Facts, objs stored) (*platform.Repair, error) {
	if p.RepairOff || objs.pool != nil && settings.Pool(objs.pool.GetAnnotations()).RefusesRepair() {
		return nil, nil
	}
	found, err := freshness.RepairWithin(f.Snapshot, revision.NewBudget(freshness.MaxWork, ctx.Err))
	if found == nil {
		return nil, err
	}
	var spec map[string]any
	switch {
	case f.Operation == freshness.Birth:
		spec, err = memberSpec(objs.template)
	case found.Plain:
		spec, _, err = copyBlueprint(objs.template.Object)
	default:
		spec, err = coldSpec(objs.template, objs.claim)
	}
	if err != nil {
		return nil, fmt.Errorf("rendering template %s for sandbox %s: %w", objs.template.GetName(), sandbox.GetName(), err)
	}
	fields := append(platform.Rewritten(sandbox, spec, blueprintPaths...), relabelled(sandbox, found.To)...)
	return &platform.Repair{From: found.From, To: found.To, Fields: fields}, nil
}

// relabelled are upstream's labels that name a member's content, by a hash of their
// own that no controller has: whoever finds that it is not the one of its template
// compares contents, and remembers for a moment, by this label, what came of it
// (isSandboxStale). With the older revision's hash the outcome would be that of the
// older members.
func relabelled(sandbox *unstructured.Unstructured, revision string) []platform.Field {
	var out []platform.Field
	for _, labels := range [][]string{{"metadata", "labels"}, {"spec", "podTemplate", "metadata", "labels"}} {
		for _, key := range []string{podTemplateHashLabel, templateHashLabel} {
			at := append(slices.Clone(labels), key)
			if str(sandbox.Object, at...) != "" {
				out = append(out, platform.Field{Path: at, Value: NameHash(settings.Domain + "/" + revision)})
			}
		}
	}
	return out
}
