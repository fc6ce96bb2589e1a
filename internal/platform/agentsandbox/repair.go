package agentsandbox

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/revision"
	"github.com/freshbind/freshbind/internal/settings"
)

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
	if found == nil || err != nil {
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
	fields := append(rewritten(sandbox, spec), relabelled(sandbox, found.To)...)
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

// rewritten are the fields of the sandbox that a spec has otherwise.
func rewritten(sandbox *unstructured.Unstructured, spec map[string]any) []platform.Field {
	var out []platform.Field
	for _, path := range [][]string{{"podTemplate", "spec"}, {"volumeClaimTemplates"}, {"service"}} {
		value, _, _ := unstructured.NestedFieldNoCopy(spec, path...)
		at := append([]string{"spec"}, path...)
		if has, _, _ := unstructured.NestedFieldNoCopy(sandbox.Object, at...); !reflect.DeepEqual(has, value) {
			out = append(out, platform.Field{Path: at, Value: value})
		}
	}
	return out
}

// repaired is the note that the sandbox has to carry, rewritten or not: the API
// server may ask once more for what was rewritten already. Like a stamp, a note
// that somebody else wrote misleads nobody but its reader.
func repaired(sandbox *unstructured.Unstructured, f platform.Facts, hash string) string {
	note := sandbox.GetAnnotations()[settings.RepairedKey]
	from, to, ok := platform.ParseRepaired(note)
	older := slices.ContainsFunc(f.Known, func(k freshness.Known) bool { return k.Hash == from })
	mayBe := f.Operation == freshness.ColdStart || f.Pool != nil && f.Pool.Replenishes
	if !mayBe || !ok || to != hash || !older {
		return ""
	}
	return note
}
