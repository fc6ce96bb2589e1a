package revision

// Equal says whether got is want, but for leaves that got has, want has not and allowed names. A leaf that want has must be there with
// the same value, or with one that allowed overrides it with. Elements of lists are told apart by their merge key where the API names one
// and the keys are unique, else by position; those that both have must come in the same order.
func Equal(want, got Blueprint, allowed PathSet) bool {
	return (*Budget)(nil).Count(want, got, allowed, 1) == 0
}

// Compare lists the leaves in which got differs from want in a way that Equal does not accept, in the order of want's canonical form.
func Compare(want, got Blueprint, allowed PathSet) []Difference {
	return (*Budget)(nil).Compare(want, got, allowed)
}

// Compare is the function Compare within the budget.
func (b *Budget) Compare(want, got Blueprint, allowed PathSet) []Difference {
	if want.Equal(got) {
		return nil
	}
	c := newComparer(b, want, got, allowed)
	c.objects(want.tree(), got.tree())
	return c.diffs
}

// Count is how many leaves Compare would list, but never more than enough.
func (b *Budget) Count(want, got Blueprint, allowed PathSet, enough int) int {
	if enough <= 0 || want.Equal(got) {
		return 0
	}
	c := newComparer(b, want, got, allowed)
	c.enough = enough
	c.objects(want.tree(), got.tree())
	return c.count
}

type comparer struct {
	budget  *Budget
	allowed PathSet
	leaves  leafComparer
	// enough differences end the comparison, and are counted only; 0 for all of them, listed.
	enough int

	steps []step
	diffs []Difference
	count int
}

func newComparer(b *Budget, want, got Blueprint, allowed PathSet) *comparer {
	return &comparer{
		budget:  b,
		allowed: allowed,
		leaves:  leafComparer{want: want.isRedacted(), got: got.isRedacted()},
		steps:   make([]step, 0, 16),
	}
}

func (c *comparer) done() bool { return c.enough > 0 && c.count >= c.enough || c.budget.Err() != nil }

func (c *comparer) push(s step) { c.pushAs(s, s) }

// pushAs takes the same step as the redacted side would write it.
func (c *comparer) pushAs(s, redacted step) {
	c.steps = append(c.steps, s)
	c.leaves.push(redacted)
	c.budget.spend(1)
}

func (c *comparer) pop() {
	c.steps = c.steps[:len(c.steps)-1]
	c.leaves.pop()
}

func (c *comparer) values(want, got any) {
	switch w := want.(type) {
	case *object:
		if g, ok := got.(*object); ok {
			c.objects(w, g)
			return
		}
	case *list:
		if g, ok := got.(*list); ok {
			c.lists(w, g)
			return
		}
	default:
		if isScalar(got) {
			if c.differ(want, got) {
				c.report(len(c.steps), func() (string, string) { return compact(want), compact(got) })
			}
			return
		}
	}
	c.missing(want)
	c.extra(got)
}

// differ says whether the scalars at the current path are not the same, and got's may not override want's.
func (c *comparer) differ(want, got any) bool {
	return !c.leaves.equal(want, got, c.atMergeKey()) && c.budget.spend(c.allowed.Len()/pathsPerLeaf) && !c.allowed.overrides(c.steps, got)
}

func isScalar(v any) bool {
	switch v.(type) {
	case *object, *list:
		return false
	default:
		return true
	}
}

// atMergeKey says whether the current path ends in the field by which the list around it tells its elements apart.
func (c *comparer) atMergeKey() bool {
	n := len(c.steps)
	return n > 1 && c.steps[n-2].element && c.steps[n-2].mergeKey != "" && c.steps[n-2].mergeKey == c.steps[n-1].name
}

// objects walks the sorted fields of both side by side.
func (c *comparer) objects(want, got *object) {
	w, g := want.fields, got.fields
	for (len(w) > 0 || len(g) > 0) && !c.done() {
		switch {
		case len(g) == 0 || len(w) > 0 && w[0].name < g[0].name:
			c.push(step{name: w[0].name})
			c.missing(w[0].value)
			w = w[1:]
		case len(w) == 0 || g[0].name < w[0].name:
			c.push(step{name: g[0].name})
			c.extra(g[0].value)
			g = g[1:]
		default:
			c.push(step{name: w[0].name})
			c.values(w[0].value, g[0].value)
			w, g = w[1:], g[1:]
		}
		c.pop()
	}
}

func (c *comparer) lists(want, got *list) {
	if !c.budget.spend(len(want.items) + len(got.items)) {
		return
	}
	wantKeys, wantKeyed := want.keys()
	gotKeys, gotKeyed := got.keys()
	if wantKeyed && gotKeyed {
		c.keyedLists(want, got, wantKeys, gotKeys)
		return
	}
	redacted, redactedKeys := want, wantKeys
	if c.leaves.got {
		redacted, redactedKeys = got, gotKeys
	}
	for i := 0; i < max(len(want.items), len(got.items)) && !c.done(); i++ {
		switch {
		case i >= len(got.items):
			c.push(elementStep(want, i, nil))
			c.missing(want.items[i])
		case i >= len(want.items):
			c.push(elementStep(got, i, nil))
			c.extra(got.items[i])
		default:
			c.pushAs(elementStep(got, i, nil), elementStep(redacted, i, redactedKeys))
			c.values(want.items[i], got.items[i])
		}
		c.pop()
	}
}

// elementStep takes no keys where the elements are told apart by their position.
func elementStep(l *list, i int, keys []any) step {
	s := step{element: true, index: i, value: l.items[i], mergeKey: l.mergeKey}
	if keys != nil {
		s.key = keys[i]
	}
	return s
}

func (c *comparer) keyedLists(want, got *list, wantKeys, gotKeys []any) {
	position := make(map[any]int, len(gotKeys))
	for i, key := range gotKeys {
		position[key] = i
	}
	common := make(map[any]bool, len(wantKeys))
	inOrder, last := true, -1
	for i, key := range wantKeys {
		if c.done() {
			return
		}
		at, both := position[key]
		if !both {
			c.push(elementStep(want, i, wantKeys))
			c.missing(want.items[i])
			c.pop()
			continue
		}
		common[key] = true
		inOrder = inOrder && at > last
		last = at
		c.push(elementStep(got, at, gotKeys))
		c.values(want.items[i], got.items[at])
		c.pop()
	}
	if !inOrder {
		c.report(len(c.steps), func() (string, string) { return keyList(wantKeys, common), keyList(gotKeys, common) })
		if n := len(c.diffs); n > 0 && c.enough == 0 {
			c.diffs[n-1].Reordered = true
		}
	}
	for i, key := range gotKeys {
		if common[key] || c.done() {
			continue
		}
		c.push(elementStep(got, i, gotKeys))
		c.extra(got.items[i])
		c.pop()
	}
}

func keyList(keys []any, common map[any]bool) string {
	l := &list{}
	for _, key := range keys {
		if common[key] {
			l.items = append(l.items, key)
		}
	}
	return compact(l)
}

// report counts a difference at the current path, and lists it where they are listed.
func (c *comparer) report(root int, values func() (want, got string)) {
	c.count++
	if c.enough > 0 || !c.budget.spend(differenceCost) {
		return
	}
	d := Difference{Path: pathText(c.steps)}
	d.Root = d.Path
	if root < len(c.steps) {
		d.Root = pathText(c.steps[:root])
	}
	d.Want, d.Got = values()
	c.diffs = append(c.diffs, d)
}

// missing reports each leaf of v, which want has at the current path and got has not.
func (c *comparer) missing(v any) {
	c.eachLeaf(v, c.rootDepth(), func(leaf any, root int) {
		c.report(root, func() (string, string) { return compact(leaf), "" })
	}, nil)
}

// extra reports each leaf of v, which got has at the current path and want has not, unless it is allowed.
func (c *comparer) extra(v any) {
	if c.atMergeKey() {
		// Paired by position with an element without key: what has a key is another
		// element, whatever may be added inside of that.
		c.report(len(c.steps), func() (string, string) { return "", compact(v) })
		return
	}
	if c.covered(0) {
		return
	}
	c.eachLeaf(v, c.rootDepth(), func(leaf any, root int) {
		if c.budget.spend(c.allowed.Len()/pathsPerLeaf) && !c.allowed.allowsLeaf(c.steps, leaf) {
			c.report(root, func() (string, string) { return "", compact(leaf) })
		}
	}, func() bool { return c.covered(len(c.steps)) })
}

// covered says whether everything at the current path and below is allowed.
func (c *comparer) covered(minLength int) bool {
	return c.budget.spend(c.allowed.Len()/pathsPerLeaf) && c.allowed.covers(c.steps, minLength)
}

// rootDepth is the number of steps to what one side has not. An element that only its position names stands for its list: the list is
// what a user can allow.
func (c *comparer) rootDepth() int {
	n := len(c.steps)
	if n > 0 && c.steps[n-1].element && c.steps[n-1].key == nil {
		return n - 1
	}
	return n
}

// eachLeaf visits the leaves of v, which is at the current path, and leaves out what skip says.
func (c *comparer) eachLeaf(v any, root int, visit func(leaf any, root int), skip func() bool) {
	if c.done() {
		return
	}
	if isLeaf(v) {
		visit(v, root)
		return
	}
	inside := func(s step, v any, root int) {
		c.push(s)
		if skip == nil || !skip() {
			c.eachLeaf(v, root, visit, skip)
		}
		c.pop()
	}
	switch v := v.(type) {
	case *object:
		if c.abovePodFields() {
			root++
		}
		for _, f := range v.fields {
			inside(step{name: f.name}, f.value, root)
		}
	case *list:
		keys, keyed := v.keys()
		// An absent list and an empty one are the same, so it is the elements that are added.
		if root == len(c.steps) && keyed {
			root++
		}
		for i, item := range v.items {
			inside(elementStep(v, i, keys), item, root)
		}
	}
}

// abovePodFields says whether the current path is podTemplate or podTemplate.spec: structs that are never absent, only empty.
func (c *comparer) abovePodFields() bool {
	return len(c.steps) <= 2 && c.steps[0].name == podTemplateKey
}
