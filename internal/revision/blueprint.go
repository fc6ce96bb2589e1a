package revision

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/util/json"
)

const (
	podTemplateKey          = "podTemplate"
	specKey                 = "spec"
	volumeClaimTemplatesKey = "volumeClaimTemplates"
	serviceKey              = "service"
	redactedKey             = "redacted"
	schedulingGatesKey      = "schedulingGates"
	volumesKey              = "volumes"
	serviceAccountNameKey   = "serviceAccountName"
	serviceAccountKey       = "serviceAccount"
)

// HashPrefix names the scheme of the hashes that Hash returns.
const HashPrefix = "v1-"

// Blueprint is the part of a template or a sandbox whose change makes a sandbox stale, in canonical form. It never changes; copies share
// it. The zero value is the empty blueprint.
type Blueprint struct {
	c *content
}

type content struct {
	root     *object
	json     []byte
	hash     string
	redacted *redaction
	podOnly  func() Blueprint
	images   func() Blueprint
}

// redaction is what a redacted blueprint keeps of the original.
type redaction struct {
	hash    string
	podHash string
}

// FromSpec takes the spec of a Sandbox or a SandboxTemplate as unstructured JSON. Of podTemplate only the spec counts, and of the other
// fields volumeClaimTemplates and service. The error names the field.
func FromSpec(spec map[string]any) (Blueprint, error) {
	in := make(map[string]any, 3)
	switch podTemplate := spec[podTemplateKey].(type) {
	case nil:
	case map[string]any:
		in[podTemplateKey] = map[string]any{specKey: podTemplate[specKey]}
	default:
		return Blueprint{}, prefixed(specKey, atField(podTemplateKey, wrongType(podTemplate, "an object")))
	}
	in[volumeClaimTemplatesKey] = spec[volumeClaimTemplatesKey]
	in[serviceKey] = spec[serviceKey]
	root, err := canonicalizer{}.structure(blueprintInfo(), in, "")
	if err != nil {
		return Blueprint{}, prefixed(specKey, err)
	}
	return newBlueprint(root), nil
}

// FromPodSpec takes the spec of a Pod as unstructured JSON and makes it the podTemplate.spec of a blueprint that has nothing else. The
// error names the field.
func FromPodSpec(spec map[string]any) (Blueprint, error) {
	podSpec, err := canonicalizer{}.structure(podSpecInfo(), spec, "")
	if err != nil {
		return Blueprint{}, prefixed(specKey, err)
	}
	return newBlueprint(podBlueprint(podSpec)), nil
}

// Parse reads what JSON wrote. Canonical or not, the result is canonical.
func Parse(data []byte) (Blueprint, error) {
	var in map[string]any
	if err := json.Unmarshal(data, &in); err != nil {
		return Blueprint{}, fmt.Errorf("parse blueprint: %w", err)
	}
	if in == nil {
		return Blueprint{}, errors.New("parse blueprint: must be a JSON object, is null")
	}
	kept, err := parseRedaction(in)
	if err != nil {
		return Blueprint{}, fmt.Errorf("parse blueprint: %w", err)
	}
	delete(in, redactedKey)
	if err := checkKeys(in); err != nil {
		return Blueprint{}, fmt.Errorf("parse blueprint: %w", err)
	}
	root, err := canonicalizer{redacted: kept != nil}.structure(blueprintInfo(), in, "")
	if err != nil {
		return Blueprint{}, fmt.Errorf("parse blueprint: %w", err)
	}
	if kept != nil {
		return newRedacted(root, kept), nil
	}
	return newBlueprint(root), nil
}

var hashPattern = regexp.MustCompile(`^` + HashPrefix + `[0-9a-f]{16}$`)

func parseRedaction(in map[string]any) (*redaction, error) {
	v, found := in[redactedKey]
	if !found {
		return nil, nil
	}
	m, _ := v.(map[string]any)
	hash, _ := m["hash"].(string)
	podHash, _ := m["podHash"].(string)
	if !hashPattern.MatchString(hash) || !hashPattern.MatchString(podHash) {
		return nil, fmt.Errorf("%s: must have a hash and a podHash that begin with %s", redactedKey, HashPrefix)
	}
	return &redaction{hash: hash, podHash: podHash}, nil
}

// checkKeys refuses what FromSpec would not have taken.
func checkKeys(in map[string]any) error {
	for key := range in {
		if blueprintInfo().fields[key] == nil {
			return atField(key, problemf("is unknown: accepted are %s, %s and %s", podTemplateKey, volumeClaimTemplatesKey, serviceKey))
		}
	}
	podTemplate, _ := in[podTemplateKey].(map[string]any)
	for key := range podTemplate {
		if key != specKey {
			return atField(podTemplateKey, atField(key, problemf("is unknown: accepted is %s", specKey)))
		}
	}
	return nil
}

func podBlueprint(podSpec any) *object {
	root := &object{}
	if podSpec != nil && !isZero(podSpecInfo(), podSpec) {
		podTemplate := &object{fields: []field{{specKey, podSpec}}}
		root.fields = []field{{podTemplateKey, podTemplate}}
	}
	return root
}

func newBlueprint(root *object) Blueprint {
	data := appendJSON(make([]byte, 0, 2048), root)
	c := &content{root: root, json: data, hash: hashOf(data)}
	c.podOnly = sync.OnceValue(func() Blueprint { return newBlueprint(podOnly(root, false)) })
	c.images = sync.OnceValue(func() Blueprint { return newBlueprint(imagesOf(root)) })
	return Blueprint{c: c}
}

func newRedacted(root *object, kept *redaction) Blueprint {
	fields := append([]field{{redactedKey, &object{fields: []field{{"hash", kept.hash}, {"podHash", kept.podHash}}}}}, root.fields...)
	stored := &object{fields: fields}
	stored.sort()
	c := &content{root: root, json: appendJSON(nil, stored), hash: kept.hash, redacted: kept}
	c.podOnly = sync.OnceValue(func() Blueprint {
		return newRedacted(podOnly(root, true), &redaction{hash: kept.podHash, podHash: kept.podHash})
	})
	c.images = sync.OnceValue(func() Blueprint { return newRedacted(imagesOf(root), kept) })
	return Blueprint{c: c}
}

func podSpecOf(root *object) any {
	podTemplate, ok := root.get(podTemplateKey).(*object)
	if !ok {
		return nil
	}
	return podTemplate.get(specKey)
}

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return HashPrefix + hex.EncodeToString(sum[:8])
}

var (
	emptyRoot = &object{}
	emptyHash = hashOf([]byte("{}"))
)

// PodOnly is the blueprint with nothing but podTemplate.spec, as a Pod of the sandbox shows it: without scheduling gates and the
// volumes in whose place a volumeClaimTemplate puts its own, and with one name for the service account.
func (b Blueprint) PodOnly() Blueprint {
	if b.c == nil {
		return b
	}
	return b.c.podOnly()
}

// WithPodOf is the blueprint with the podTemplate of another one, which is not redacted.
func (b Blueprint) WithPodOf(other Blueprint) Blueprint {
	isPod := func(f field) bool { return f.name == podTemplateKey }
	root := &object{fields: slices.DeleteFunc(slices.Clone(b.tree().fields), isPod)}
	if i := slices.IndexFunc(other.tree().fields, isPod); i >= 0 {
		root.fields = append(root.fields, other.tree().fields[i])
	}
	root.sort()
	return newBlueprint(root)
}

// IsZero says whether the blueprint is empty.
func (b Blueprint) IsZero() bool { return len(b.tree().fields) == 0 }

// Hash is the template-spec-hash: "v1-" and the first 16 hex digits of the SHA-256 of JSON, for a redacted blueprint that of the original.
func (b Blueprint) Hash() string {
	if b.c == nil {
		return emptyHash
	}
	return b.c.hash
}

// String is the hash. The content can hold secrets, so formatting a blueprint never shows it.
func (b Blueprint) String() string { return b.Hash() }

// JSON returns the canonical JSON, which Parse reads.
func (b Blueprint) JSON() []byte {
	if b.c == nil {
		return []byte("{}")
	}
	return bytes.Clone(b.c.json)
}

// Bytes is about what the blueprint takes in memory, its tree and the rendering of its Pod alone included.
func (b Blueprint) Bytes() int {
	if b.c == nil {
		return 0
	}
	return treeFactor * len(b.c.json)
}

// treeFactor is how much larger than its JSON a blueprint is in memory: each field of the tree is a name, an interface and its value, and
// PodOnly has JSON of its own.
const treeFactor = 8

// Equal says whether both have the same canonical JSON. A redacted blueprint never equals one that is not; the function Equal compares
// those.
func (b Blueprint) Equal(other Blueprint) bool {
	if b.c == nil || other.c == nil {
		return b.IsZero() && other.IsZero() && !b.isRedacted() && !other.isRedacted()
	}
	return b.c == other.c || bytes.Equal(b.c.json, other.c.json)
}

func (b Blueprint) tree() *object {
	if b.c == nil {
		return emptyRoot
	}
	return b.c.root
}

func (b Blueprint) isRedacted() bool { return b.c != nil && b.c.redacted != nil }
