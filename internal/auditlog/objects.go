package auditlog

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/freshbind/freshbind/internal/checker"
)

// object is the version as the checker takes it: what it reads, and nothing else.
func (f *feeder) object(v *version) (*unstructured.Unstructured, error) {
	o := v.object
	apiVersion := o.apiVersion
	if apiVersion == "" {
		apiVersion = "v1"
		if o.kind.Group != "" {
			apiVersion = o.kind.Group + "/v1"
		}
	}
	metadata := map[string]any{"name": o.name, "uid": o.uid, "resourceVersion": strconv.FormatUint(v.rv, 10)}
	if o.namespace != "" {
		metadata["namespace"] = o.namespace
	}
	if !o.created.IsZero() {
		metadata["creationTimestamp"] = o.created.UTC().Format(time.RFC3339)
	}
	out := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": o.kind.Name, "metadata": metadata}}
	if v.what != goneUnordered {
		metadata["generation"] = v.generation
	}
	if v.details != 0 {
		d, err := unpack(f.texts[v.details])
		if err != nil {
			return nil, err
		}
		d.into(metadata)
		if status := d.status.into(o.kind); status != nil {
			out.Object["status"] = status
		}
	}
	if v.spec != 0 {
		spec, err := f.spec(v)
		if err != nil {
			return nil, fmt.Errorf("%s %s/%s at resourceVersion %d: spec: %w", o.kind.Plural, o.namespace, o.name, v.rv, err)
		}
		out.Object["spec"] = spec
	}
	return out, nil
}

func (d *details) into(metadata map[string]any) {
	for key, list := range map[string][]pair{"labels": d.labels, "annotations": d.annotations} {
		if len(list) == 0 {
			continue
		}
		values := make(map[string]any, len(list))
		for _, p := range list {
			values[p.key] = p.value
		}
		metadata[key] = values
	}
	if d.deleting != "" {
		metadata["deletionTimestamp"] = d.deleting
	}
	if len(d.owners) == 0 {
		return
	}
	refs := make([]any, len(d.owners))
	for i, o := range d.owners {
		ref := map[string]any{"apiVersion": o.apiVersion, "kind": o.kind, "name": o.name, "uid": o.uid}
		if o.controller != nil {
			ref["controller"] = *o.controller
		}
		refs[i] = ref
	}
	metadata["ownerReferences"] = refs
}

// spec returns the spec as the checker reads it, which does not change it.
func (f *feeder) spec(v *version) (map[string]any, error) {
	if known, ok := f.decoded[v.spec]; ok {
		return known, nil
	}
	raw := f.texts[v.spec]
	if !json.Valid([]byte(raw)) {
		return nil, errors.New("it is no JSON")
	}
	if v.object.kind.Resource == checker.Pods {
		var err error
		if raw, err = podPart(raw); err != nil {
			return nil, fmt.Errorf("decode: %w", err)
		}
	}
	var out map[string]any
	if err := utiljson.Unmarshal([]byte(raw), &out); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	if f.log.uses[v.spec] > 0 && len(raw) <= f.room {
		f.decoded[v.spec] = out
		f.room -= len(raw)
	}
	return out, nil
}

// podPart is what the checker reads of a Pod's spec apart from its text.
func podPart(spec string) (string, error) {
	var parts []string
	err := fields([]byte(spec), func(key, value []byte) error {
		if string(key) == "nodeName" || string(key) == "ephemeralContainers" {
			parts = append(parts, `"`+string(key)+`":`+string(value))
		}
		return nil
	})
	return "{" + strings.Join(parts, ",") + "}", err
}

func (s status) into(k *checker.Kind) map[string]any {
	if s == (status{}) {
		return nil
	}
	out := map[string]any{}
	if s.ready {
		out["conditions"] = []any{map[string]any{"type": "Ready", "status": "True"}}
	}
	if s.digest != 0 {
		out["digest"] = strconv.FormatUint(s.digest, 16)
	}
	if s.phase != "" {
		out["phase"] = s.phase
	}
	if s.claimed != 0 {
		out["claimedReplicas"] = int64(min(s.claimed, math.MaxInt64))
	}
	switch {
	case s.ips == "":
	case k.Platform == checker.Kruise:
		out["podInfo"] = map[string]any{"podIP": s.ips}
	default:
		out["podIPs"] = listed(s.ips, k)
	}
	return out
}
