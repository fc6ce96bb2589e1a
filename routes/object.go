package routes

// object is the sandbox and the Pod of one name, either of which may be missing.
type object struct {
	sandbox *route
	pod     *pod
}

// setSandbox changes which sandbox has a name; nil for none.
func (t *Table) setSandbox(key objectKey, r *route) {
	o := t.objects[key]
	t.count(Sandboxes, o.sandbox != nil, r != nil)
	o.sandbox = r
	t.set(key, o)
}

// setPod changes which Pod has a name; nil for none.
func (t *Table) setPod(key objectKey, p *pod) {
	o := t.objects[key]
	t.count(Pods, o.pod != nil, p != nil)
	o.pod = p
	t.set(key, o)
}

func (t *Table) set(key objectKey, o object) {
	if o == (object{}) {
		delete(t.objects, key)
		return
	}
	t.objects[key] = o
}

func (t *Table) count(kind Kind, was, is bool) {
	if was {
		t.counts[kind]--
	}
	if is {
		t.counts[kind]++
	}
}
