package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// property is one thing that Freshbind promises.
type property struct{ name, means string }

// properties are all of them, as CONTRIBUTING.md lists them; docs/how-it-works.md
// explains them.
var properties = []property{
	{"fresh", "no claim gets what was built from an older revision"},
	{"alive", "nor what is being deleted, has lost its Pod, or runs something else"},
	{"once", "a member goes to one claim, once"},
	{"belongs", "and to a claim of its own pool and template"},
	{"in-use", "nothing that a claim has is deleted"},
	{"absence", "what is not seen proves nothing"},
	{"ghosts", "whatever is ready and shown can be claimed"},
	{"undecided", "a read that failed is an error, never a denial"},
	{"installing", "nothing is acted on before somebody says `enforce`"},
	{"routes", "what was deleted is never routed to"},
	{"bounded", "what one tenant writes costs the others little"},
	{"ends", "every rollout completes, or fails in words"},
}

func propertyNames() []string {
	var names []string
	for _, p := range properties {
		names = append(names, p.name)
	}
	return names
}

// everything stands for all such tests of a package.
const everything = "*"

// other is what a test is for that shows none of them.
const other = "-"

// The sets of tests: each is in one.
const (
	// short is what make test runs.
	short = "short"
	// rest is what make test-all runs besides.
	rest = "rest"
	// releases is what make matrix runs only, once for each release of agent-sandbox.
	releases = "releases"
	// alsoMatrix, beside one of them, is what make matrix runs on each Kubernetes.
	alsoMatrix = "matrix"
)

// row is one test that starts a control plane.
type row struct {
	set    string
	matrix bool
	// pkg is a folder below test/.
	pkg string
	// test is its name, or the name and how those of its subtests begin that are
	// meant, or everything.
	test string
	// shows are the properties that it shows.
	shows []string
	why   string
}

// parse reads lines of a set, a package, a test, properties with commas between
// them, and a reason.
func parse(text string) ([]row, error) {
	var rows []row
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		r, err := parseRow(line)
		if err != nil {
			return nil, fmt.Errorf("tests.txt: %q: %w", line, err)
		}
		rows = append(rows, r)
	}
	return rows, nil
}

func parseRow(line string) (row, error) {
	const columns = 4
	fields := strings.Fields(line)
	if len(fields) <= columns {
		return row{}, fmt.Errorf("want set, package, test, properties and a reason")
	}
	set, also, found := strings.Cut(fields[0], ",")
	r := row{set: set, matrix: found, pkg: fields[1], test: fields[2], why: strings.Join(fields[columns:], " ")}
	if !slices.Contains([]string{short, rest, releases}, set) || found && also != alsoMatrix {
		return row{}, fmt.Errorf("set %q: use %s, %s or %s, and %q after it for %s, too", fields[0], short, rest, releases, ","+alsoMatrix, alsoMatrix)
	}
	if fields[3] == other {
		return r, nil
	}
	r.shows = strings.Split(fields[3], ",")
	for _, p := range r.shows {
		if names := propertyNames(); !slices.Contains(names, p) {
			return row{}, fmt.Errorf("property %q: use %s, or %s", p, strings.Join(names, ", "), other)
		}
	}
	return r, nil
}

// load reads the table and puts the tests of its package in the place of everything,
// but for those that have rows of their own.
func load(text, root string) ([]row, error) {
	rows, err := parse(text)
	if err != nil {
		return nil, err
	}
	var all []row
	for _, r := range rows {
		if r.test != everything {
			all = append(all, r)
			continue
		}
		tests, err := clusterTests(filepath.Join(root, r.pkg))
		if err != nil {
			return nil, err
		}
		for _, r.test = range tests {
			own := slices.ContainsFunc(rows, func(o row) bool { return o.pkg == r.pkg && o.test == r.test })
			if !own {
				all = append(all, r)
			}
		}
	}
	return all, nil
}

// faults are tests without a row, rows without a test, and names that -run and
// -skip cannot tell apart.
func faults(rows []row, found map[string][]string) []string {
	var wrong []string
	listed, sets := map[string]bool{}, map[string]string{}
	for _, r := range rows {
		name, _, _ := strings.Cut(r.test, "/")
		listed[r.pkg+" "+name] = true
		if !slices.Contains(found[r.pkg], name) {
			wrong = append(wrong, fmt.Sprintf("test/%s has no %s that starts a control plane", r.pkg, name))
		}
		if before, ok := sets[r.test]; ok && before != r.set {
			wrong = append(wrong, fmt.Sprintf("%s is %s in one row and %s in another", r.test, before, r.set))
		}
		sets[r.test] = r.set
	}
	for pkg, tests := range found {
		for _, test := range tests {
			if !listed[pkg+" "+test] {
				wrong = append(wrong, fmt.Sprintf("test/%s: %s starts a control plane, and tests.txt has no row for it", pkg, test))
			}
		}
	}
	slices.Sort(wrong)
	return wrong
}
