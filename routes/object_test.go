package routes

import "testing"

// TestObjectsOfOneName has a sandbox and a Pod come and go under one name.
func TestObjectsOfOneName(t *testing.T) {
	table := New(Options{})
	key := keyOf("ns", "a")
	for _, step := range []struct {
		name                string
		do                  func()
		routes, pods, names int
	}{
		{"the Pod comes", func() { table.setPod(key, &pod{}) }, 0, 1, 1},
		{"the sandbox comes", func() { table.setSandbox(key, &route{}) }, 1, 1, 1},
		{"the sandbox changes", func() { table.setSandbox(key, &route{version: 2}) }, 1, 1, 1},
		{"the Pod changes", func() { table.setPod(key, &pod{version: 2}) }, 1, 1, 1},
		{"the Pod goes", func() { table.setPod(key, nil) }, 1, 0, 1},
		{"the Pod comes again", func() { table.setPod(key, &pod{version: 3}) }, 1, 1, 1},
		{"the sandbox goes", func() { table.setSandbox(key, nil) }, 0, 1, 1},
		{"the Pod goes, too", func() { table.setPod(key, nil) }, 0, 0, 0},
	} {
		step.do()
		if s := table.Stats(); s.Routes != step.routes || s.Pods != step.pods || len(table.objects) != step.names {
			t.Errorf("%s: %d routes, %d Pods, %d names; want %d, %d, %d", step.name, s.Routes, s.Pods, len(table.objects), step.routes, step.pods, step.names)
		}
	}
}
