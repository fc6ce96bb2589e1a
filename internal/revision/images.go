package revision

const imageKey = "image"

// containerKeys are the lists of a Pod whose containers run what a template says.
var containerKeys = []string{"containers", "initContainers"}

// Images is the blueprint with nothing but names and images of containers and init containers: what of a Pod can be exchanged while it
// runs.
func (b Blueprint) Images() Blueprint {
	if b.c == nil {
		return b
	}
	return b.c.images()
}

func imagesOf(root *object) *object {
	podSpec, _ := podSpecOf(root).(*object)
	if podSpec == nil {
		return podBlueprint(nil)
	}
	out := &object{}
	for _, key := range containerKeys {
		if l, ok := podSpec.get(key).(*list); ok {
			out.fields = append(out.fields, field{key, imagesIn(l)})
		}
	}
	return podBlueprint(out)
}

func imagesIn(l *list) *list {
	out := &list{mergeKey: l.mergeKey, items: make([]any, 0, len(l.items))}
	for _, item := range l.items {
		container := &object{}
		in, _ := item.(*object) // as its type says
		for _, f := range in.fields {
			if f.name == imageKey || f.name == l.mergeKey {
				container.fields = append(container.fields, f)
			}
		}
		out.items = append(out.items, container)
	}
	return out
}
