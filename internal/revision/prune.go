package revision

// Prune returns the spec of a Pod without fields that the API types of this build (k8s.io/api in go.mod) do not know. The API server
// of a Kubernetes that is not newer leaves them out of Pods, as it does what has the wrong name or case (sigs.k8s.io/json is
// case-sensitive): whoever writes a template whose schema keeps them changes nothing. What it returns may share parts with spec,
// and what is not an object is returned as it is.
func Prune(spec any) any { return prune(podSpecInfo(), spec) }

func prune(t *typeInfo, in any) any {
	switch v := in.(type) {
	case map[string]any:
		// Of maps every key is known, and none of a Pod's holds objects.
		if t.kind != kindStruct {
			return in
		}
		out := make(map[string]any, len(v))
		for name, value := range v {
			if info := t.fields[name]; info != nil {
				out[name] = prune(info, value)
			}
		}
		return out
	case []any:
		if t.kind != kindList {
			return in
		}
		out := make([]any, len(v))
		for i, value := range v {
			out[i] = prune(t.elem, value)
		}
		return out
	}
	return in
}
