// Package history keeps the revisions that a template has had, as
// ControllerRevision objects which the template owns. They name what is stale
// and make a rollback possible; no verdict needs them, because history has
// holes (it dies with `kubectl replace --force` and misses edits made while
// nobody watched).
package history

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/revision"
	"github.com/freshbind/freshbind/internal/settings"
)

const (
	// maxName is the longest name of an object, RFC 1123.
	maxName = 253
)

// payload is what a ControllerRevision's data holds: the template's spec, or
// digests of its rendering's leaves where values must not be kept.
type payload struct {
	Spec    map[string]any  `json:"spec,omitempty"`
	Digests json.RawMessage `json:"digests,omitempty"`
}

// revisionName is <template>-<hash>, and <template>.<kind>-<hash> for what pools refer to
// although they have templates of their own kind: two can have one name, and the same
// content. An overlong template name is cut, since the owner reference and the labels
// identify the template.
func revisionName(template, sharedKind, hash string) string {
	end := "-" + hash
	if sharedKind != "" {
		end = "." + strings.ToLower(sharedKind) + end
	}
	if room := maxName - len(end); len(template) > room {
		template = strings.TrimRight(template[:room], ".-")
	}
	return template + end
}

// encode returns the ControllerRevision that records the template as it is.
func (r *Recorder) encode(template *unstructured.Unstructured, rendered revision.Blueprint, number int64, digests bool) (*appsv1.ControllerRevision, error) {
	var p payload
	if digests {
		p.Digests = rendered.Redact().JSON()
	} else {
		p.Spec, _ = template.Object["spec"].(map[string]any)
	}
	raw, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("encoding revision of template %s: %w", template.GetName(), err)
	}
	hash := rendered.Hash()
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name:      revisionName(template.GetName(), r.sharedKind, hash),
			Namespace: template.GetNamespace(),
			Labels: map[string]string{
				settings.TemplateUIDLabel: string(template.GetUID()),
				settings.StampKey:         hash,
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: template.GetAPIVersion(),
				Kind:       template.GetKind(),
				Name:       template.GetName(),
				UID:        template.GetUID(),
				Controller: ptr.To(true),
			}},
		},
		Data:     runtime.RawExtension{Raw: raw},
		Revision: number,
	}, nil
}

// hasValues reports whether a revision holds a template's values. What cannot be
// read may.
func hasValues(cr *appsv1.ControllerRevision) bool {
	var p payload
	return json.Unmarshal(cr.Data.Raw, &p) != nil || len(p.Digests) == 0
}

// decode reads a ControllerRevision back. One that another version of this
// program named by another hash scheme is rendered, and so named, anew.
func decode(cr *appsv1.ControllerRevision, renders platform.Renderer) (platform.Recorded, error) {
	var p payload
	if err := json.Unmarshal(cr.Data.Raw, &p); err != nil {
		return platform.Recorded{}, fmt.Errorf("decoding revision %s/%s: %w", cr.Namespace, cr.Name, err)
	}
	if len(p.Digests) > 0 {
		b, err := revision.Parse(p.Digests)
		if err != nil {
			return platform.Recorded{}, fmt.Errorf("decoding digests of revision %s/%s: %w", cr.Namespace, cr.Name, err)
		}
		return platform.Recorded{Hash: b.Hash(), Rendered: b}, nil
	}
	template := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": cr.Name, "namespace": cr.Namespace},
		"spec":     p.Spec,
	}}
	if of := metav1.GetControllerOfNoCopy(cr); of != nil {
		template.SetGroupVersionKind(schema.FromAPIVersionAndKind(of.APIVersion, of.Kind))
	}
	b, err := renders.Render(template)
	if err != nil {
		return platform.Recorded{}, fmt.Errorf("rendering revision %s/%s: %w", cr.Namespace, cr.Name, err)
	}
	return platform.Recorded{Hash: b.Hash(), Template: template, Rendered: b}, nil
}

func sortByNumber(list []*appsv1.ControllerRevision) {
	slices.SortFunc(list, func(a, b *appsv1.ControllerRevision) int { return cmp.Compare(a.Revision, b.Revision) })
}
