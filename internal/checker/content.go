package checker

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// digestDigits is enough to tell the revisions of one template apart in a report; equality never depends on it.
const digestDigits = 12

// blueprint is what a Sandbox runs, decoded. Leaves that the types do not know are kept beside it, by their path.
type blueprint struct {
	pod      corev1.PodSpec
	podExtra map[string]any
	volumes  []volumeClaim
	service  *bool
}

type volumeMetadata struct {
	Name        string            `json:"name,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type typedVolume struct {
	Metadata volumeMetadata                   `json:"metadata"`
	Spec     corev1.PersistentVolumeClaimSpec `json:"spec"`
}

// volumeClaim is one volumeClaimTemplate.
type volumeClaim struct {
	typedVolume
	extra map[string]any
}

// content is a blueprint ready to be compared and shown.
type content struct {
	blueprint
	sum    [sha256.Size]byte
	digest string
	made   map[string]any // kept by podTree
}

func decodeBlueprint(u *unstructured.Unstructured) (blueprint, error) {
	var b blueprint
	spec, _ := u.Object["spec"].(map[string]any)
	field := "podTemplate"
	if isKruise(u) {
		field = "template"
	}
	template, _ := spec[field].(map[string]any)
	if err := decode(template["spec"], &b.pod, "spec."+field+".spec"); err != nil {
		return b, err
	}
	if isKruise(u) {
		// Its schemas keep what no Pod has, and its controllers leave it out of members.
		b.podExtra = kruiseFields(spec)
	} else {
		b.podExtra = unknownLeaves(template["spec"], reflect.TypeFor[corev1.PodSpec]())
	}
	var err error
	if b.volumes, err = decodeVolumes(spec["volumeClaimTemplates"]); err != nil {
		return b, err
	}
	switch service := spec["service"].(type) {
	case nil:
	case bool:
		b.service = &service
	default:
		return b, fmt.Errorf("decode spec.service: it is a %T, not a bool", service)
	}
	return b, nil
}

func decodeVolumes(raw any) ([]volumeClaim, error) {
	if raw == nil {
		return nil, nil
	}
	list, ok := raw.([]any)
	if !ok {
		return nil, fmt.Errorf("decode spec.volumeClaimTemplates: it is a %T, not a list", raw)
	}
	var out []volumeClaim
	for i, item := range list {
		var v volumeClaim
		if err := decode(item, &v.typedVolume, fmt.Sprintf("spec.volumeClaimTemplates[%d]", i)); err != nil {
			return nil, err
		}
		v.extra = unknownLeaves(item, reflect.TypeFor[typedVolume]())
		out = append(out, v)
	}
	return out, nil
}

// equal reports whether two blueprints mean the same: the API types' own equality, and the same unknown leaves.
func (b blueprint) equal(o blueprint) bool {
	if !equality.Semantic.DeepEqual(b.pod, o.pod) || !equality.Semantic.DeepEqual(b.service, o.service) ||
		!sameLeaves(b.podExtra, o.podExtra) || len(b.volumes) != len(o.volumes) {
		return false
	}
	for i, v := range b.volumes {
		w := o.volumes[i]
		if !equality.Semantic.DeepEqual(v.typedVolume, w.typedVolume) || !sameLeaves(v.extra, w.extra) {
			return false
		}
	}
	return true
}

func sameLeaves(a, b map[string]any) bool {
	return maps.EqualFunc(a, b, reflect.DeepEqual)
}

func newContent(b blueprint) (*content, error) {
	leaves, err := b.leaves()
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(leaves)
	if err != nil {
		return nil, fmt.Errorf("encode blueprint: %w", err)
	}
	sum := sha256.Sum256(raw)
	return &content{blueprint: b, sum: sum, digest: hex.EncodeToString(sum[:])[:digestDigits]}, nil
}

// sameContent reports whether two contents are one. Contents of two sums may still mean the same.
func sameContent(a, b *content) bool {
	return a == b || a != nil && b != nil && a.sum == b.sum
}

// specContent is what a spec comes to.
type specContent struct {
	content *content
	err     error
}

// contentOf decodes a spec once for all that have it.
func (h *History) contentOf(u *unstructured.Unstructured, specKey string) (*content, error) {
	if known, ok := h.specs[specKey]; ok && specKey != "" {
		return known.content, known.err
	}
	var out specContent
	b, err := decodeBlueprint(u)
	if err == nil {
		out.content, err = h.intern(b)
	}
	if out.err = err; specKey != "" {
		h.specs[specKey] = out
	}
	return out.content, out.err
}

// intern returns the content of a blueprint; those of one digest share one value.
func (h *History) intern(b blueprint) (*content, error) {
	c, err := newContent(b)
	if err != nil {
		return nil, err
	}
	if known, ok := h.contents[c.sum]; ok {
		return known, nil
	}
	h.contents[c.sum] = c
	return c, nil
}
