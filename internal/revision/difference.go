package revision

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
)

// Difference is one leaf in which two blueprints differ. Want and Got can hold secrets; String and Summary print only those that cannot.
type Difference struct {
	// Path of the leaf, in the grammar of ParsePaths; of the list where the order of elements differs.
	Path string `json:"path"`
	// Want and Got are compact JSON; "" says that this side has no such leaf. Where the order differs they list the merge keys of the
	// elements that both have. Of a redacted blueprint they are digests.
	Want string `json:"want,omitempty"`
	Got  string `json:"got,omitempty"`
	// Root is the highest path at or above Path where one side has nothing at all: an added container has a leaf for each of its fields,
	// and all have the container for their root. An element that only its position names has its list for a root.
	Root string `json:"root"`
	// Reordered: both have these elements of a list, in another order.
	Reordered bool `json:"reordered,omitempty"`
}

const (
	absent       = "(absent)"
	maxValueText = 64
)

// String is for people: containers[name=python].image: "sandbox:v1" -> "sandbox:v2". The path is relative to podTemplate.spec if it can
// be. Values are shown only where both sides have one that can hold no secret, and long ones are cut; of others it says what became of
// them: containers[name=python].args[0]: changed.
func (d Difference) String() string {
	path := shortPath(d.Path)
	switch {
	case d.Reordered:
		return path + ": in another order"
	case d.shows(d.Want) && d.shows(d.Got):
		return fmt.Sprintf("%s: %s -> %s", path, display(d.Want), display(d.Got))
	case d.Want == "":
		return path + ": added"
	case d.Got == "":
		return path + ": removed"
	default:
		return path + ": changed"
	}
}

func display(value string) string {
	if value == "" {
		return absent
	}
	return Truncate(value, maxValueText+1)
}

// element is the step into a list, by merge key or by position. What stands in quotes is kept together, so that no name looks like a path.
const element = `\[(?:\d+|\w+=(?:[^\[\]",]+|"(?:[^"\\]|\\.)*"))\]`

var (
	shownPath = regexp.MustCompile(`^(?:podTemplate\.spec\.(?:initContainers|containers|ephemeralContainers)` + element + `\.(?:image|resources\.(?:limits|requests)[.\[].+)` +
		`|podTemplate\.spec\.resources\.(?:limits|requests)[.\[].+|podTemplate\.spec\.overhead[.\[].+` +
		`|volumeClaimTemplates` + element + `\.spec\.resources\.(?:limits|requests)[.\[].+)$`)
	numberPath  = regexp.MustCompile(`^podTemplate\.spec\.(?:priority|terminationGracePeriodSeconds|activeDeadlineSeconds|securityContext\.(?:runAsUser|runAsGroup|fsGroup))$`)
	wholeNumber = regexp.MustCompile(`^-?\d+$`)
)

// shownWords are values that are shown wherever they stand: words of the API, which say nothing that is not public.
var shownWords = sets.New("", "true", "false", "{}", "[]",
	`"Always"`, `"IfNotPresent"`, `"Never"`, `"OnFailure"`, `"ClusterFirst"`, `"ClusterFirstWithHostNet"`, `"Default"`, `"None"`,
	`"TCP"`, `"UDP"`, `"SCTP"`, `"Memory"`, `"ReadWriteOnce"`, `"ReadOnlyMany"`, `"ReadWriteMany"`, `"ReadWriteOncePod"`, `"Filesystem"`, `"Block"`)

// shows says whether the value can hold no secret.
func (d Difference) shows(value string) bool {
	return shownWords.Has(value) || shownPath.MatchString(d.Path) || wholeNumber.MatchString(value) && numberPath.MatchString(d.Path)
}

func shortPath(path string) string {
	return strings.TrimPrefix(path, podTemplateKey+"."+specKey+".")
}

// Summary renders at most limit differences in one line, taking those with one root together, and says how many leaves more there are. A
// limit of 0 or less is none.
func Summary(diffs []Difference, limit int) string {
	groups := groupByRoot(diffs)
	if limit <= 0 || limit > len(groups) {
		limit = len(groups)
	}
	parts := make([]string, 0, limit+1)
	for _, group := range groups[:limit] {
		parts = append(parts, groupText(group))
	}
	rest := 0
	for _, group := range groups[limit:] {
		rest += len(group)
	}
	if rest > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", rest))
	}
	return strings.Join(parts, "; ")
}

func groupByRoot(diffs []Difference) [][]Difference {
	var groups [][]Difference
	for i, d := range diffs {
		if i > 0 && d.Root == diffs[i-1].Root && d.oneSided() && diffs[i-1].oneSided() && (d.Want == "") == (diffs[i-1].Want == "") {
			groups[len(groups)-1] = append(groups[len(groups)-1], d)
			continue
		}
		groups = append(groups, []Difference{d})
	}
	return groups
}

func (d Difference) oneSided() bool { return d.Want == "" || d.Got == "" }

func groupText(group []Difference) string {
	first := group[0]
	if len(group) == 1 {
		return first.String()
	}
	what := "added"
	if first.Got == "" {
		what = "removed"
	}
	return fmt.Sprintf("%s: %s (%d fields)", shortPath(first.Root), what, len(group))
}
