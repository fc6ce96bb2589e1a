package revision

// Redact replaces every scalar by a digest of its path and its value, less the merge keys of lists, so that elements keep their names.
// A redacted blueprint keeps the hash of the original, survives JSON and Parse, and can be compared with one that is not redacted.
// A digest hides a value only as well as the value is hard to guess.
func (b Blueprint) Redact() Blueprint {
	if b.c == nil || b.c.redacted != nil {
		return b
	}
	r := redacter{}
	tree, _ := r.value(b.c.root).(*object)
	return newRedacted(tree, &redaction{hash: b.Hash(), podHash: b.PodOnly().Hash()})
}

type redacter struct {
	steps []step
}

func (r *redacter) value(v any) any {
	switch v := v.(type) {
	case *object:
		return r.object(v)
	case *list:
		out := &list{mergeKey: v.mergeKey, items: make([]any, 0, len(v.items))}
		keys, _ := v.keys()
		for i := range v.items {
			r.steps = append(r.steps, elementStep(v, i, keys))
			out.items = append(out.items, r.value(v.items[i]))
			r.steps = r.steps[:len(r.steps)-1]
		}
		return out
	default:
		return digest(pathText(r.steps), v)
	}
}

func (r *redacter) object(o *object) *object {
	mergeKey := ""
	if n := len(r.steps); n > 0 && r.steps[n-1].element {
		mergeKey = r.steps[n-1].mergeKey
	}
	out := &object{fields: make([]field, 0, len(o.fields))}
	for _, f := range o.fields {
		if mergeKey == "" || f.name != mergeKey {
			r.steps = append(r.steps, step{name: f.name})
			f.value = r.value(f.value)
			r.steps = r.steps[:len(r.steps)-1]
		}
		out.fields = append(out.fields, f)
	}
	return out
}
