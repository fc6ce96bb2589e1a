package revision

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParsePathsReadsWhatItWrites(t *testing.T) {
	for _, path := range []string{
		"podTemplate.spec.restartPolicy",
		"podTemplate.spec.containers[name=python].env[name=HTTP_PROXY]",
		"podTemplate.spec.containers[*].resources.limits[\"nvidia.com/gpu\"]",
		"podTemplate.spec.volumes[name=kube-api-access-*]",
		"podTemplate.spec.volumes[name=*]",
		"podTemplate.spec.volumes[name=\"a]\\\"*\"]",
		"podTemplate.spec.restartPolicy=Always",
		"podTemplate.spec.nodeName=\"\"",
		"podTemplate.spec.nodeName=*",
		"podTemplate.spec.tolerations[12].key=a.b/c",
		"podTemplate.spec[\"new field\"]",
		"podTemplate.spec.containers[name=c].volumeMounts[mountPath=/var/run/secrets/kubernetes.io/serviceaccount]",
		"volumeClaimTemplates",
		"volumeClaimTemplates[0].metadata.labels",
		"service=true",
		"service",
	} {
		set, err := ParsePaths(path)
		if err != nil {
			t.Errorf("ParsePaths: %v", err)
			continue
		}
		if diff := cmp.Diff(path, set.String()); diff != "" {
			t.Errorf("String (-want,+got):\n%s", diff)
		}
	}
}

func TestParsePathsRefuses(t *testing.T) {
	const roots = "accepted are paths that begin with podTemplate.spec.<field>, volumeClaimTemplates or service"
	cases := map[string]struct {
		path string
		want string
	}{
		"nothing":                {``, `path "": a field name is missing before "": names are made of A-Z a-z 0-9 _ -, others are written ["name"]`},
		"the whole pod":          {`podTemplate.spec`, `path "podTemplate.spec": ` + roots},
		"the pod template":       {`podTemplate`, `path "podTemplate": ` + roots},
		"pod metadata":           {`podTemplate.metadata.labels`, `path "podTemplate.metadata.labels": ` + roots},
		"any element of a pod":   {`podTemplate.spec[name=a]`, `path "podTemplate.spec[name=a]": ` + roots},
		"below a boolean":        {`service.a`, `path "service.a": ` + roots},
		"another root":           {`replicas`, `path "replicas": ` + roots},
		"the root left out":      {`containers[*].image`, `path "containers[*].image": ` + roots + `; did you mean "podTemplate.spec.containers[*].image"?`},
		"the root of a pod":      {`spec.restartPolicy=Always`, `path "spec.restartPolicy=Always": ` + roots + `; did you mean "podTemplate.spec.restartPolicy=Always"?`},
		"the root of a sandbox":  {`spec.podTemplate.spec.hostname`, `path "spec.podTemplate.spec.hostname": ` + roots + `; did you mean "podTemplate.spec.hostname"?`},
		"a dot at the end":       {`podTemplate.spec.`, `path "podTemplate.spec.": a field name is missing before "": names are made of A-Z a-z 0-9 _ -, others are written ["name"]`},
		"a slash in a name":      {`podTemplate.spec.nodeSelector.a/b`, `path "podTemplate.spec.nodeSelector.a/b": unexpected "/b": a field is followed by ".", "[" or "="`},
		"a bracket not closed":   {`podTemplate.spec.volumes[name=a`, `path "podTemplate.spec.volumes[name=a": "]" is missing before ""`},
		"an empty bracket":       {`podTemplate.spec.volumes[]`, `path "podTemplate.spec.volumes[]": "" in brackets: accepted are *, a number, <field>=<value> and a quoted key`},
		"a word in brackets":     {`podTemplate.spec.volumes[a]`, `path "podTemplate.spec.volumes[a]": "a" in brackets: accepted are *, a number, <field>=<value> and a quoted key`},
		"a negative position":    {`podTemplate.spec.volumes[-1]`, `path "podTemplate.spec.volumes[-1]": "-1" in brackets: accepted are *, a number, <field>=<value> and a quoted key`},
		"a star in a value":      {`podTemplate.spec.volumes[name=a*b]`, `path "podTemplate.spec.volumes[name=a*b]": "]" is missing before "b]"`},
		"a selector of no field": {`podTemplate.spec.volumes[=a]`, `path "podTemplate.spec.volumes[=a]": a field name is missing before "="`},
		"an empty value":         {`podTemplate.spec.nodeName=`, `path "podTemplate.spec.nodeName=": a value is missing before "": write "" for the empty string, and quotes around a value with white space or any of , [ ] = " \ *`},
		"more behind a value":    {`podTemplate.spec.nodeName=a=b`, `path "podTemplate.spec.nodeName=a=b": unexpected "=b" behind the value`},
		"quotes not closed":      {`podTemplate.spec.nodeName="a\"`, `path "podTemplate.spec.nodeName=\"a\\\"": the quotes around "a\" are not closed`},
		"brackets in front":      {`["podTemplate"].spec.hostname`, `path "[\"podTemplate\"].spec.hostname": a field name is missing before "[\"podTemplate\"].spec.hostname": names are made of A-Z a-z 0-9 _ -, others are written ["name"]`},
		"another root of a pod":  {`template.spec.hostname`, `path "template.spec.hostname": ` + roots},
		"another of a sandbox":   {`spec.replicas`, `path "spec.replicas": ` + roots},
		"no JSON string":         {`podTemplate.spec["\x"]`, `path "podTemplate.spec[\"\\x\"]": "\x" is not a JSON string`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			set, err := ParsePaths("service", tc.path)
			if err == nil {
				t.Fatalf("no error, but %s", set)
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("error (-want,+got):\n%s", diff)
			}
			if set.Len() != 0 {
				t.Errorf("with an error, the set must be empty, is %s", set)
			}
		})
	}
}

func TestSplitPaths(t *testing.T) {
	cases := map[string]struct {
		list string
		want []string
	}{
		"empty":                      {" ,\n", nil},
		"one":                        {"a", []string{"a"}},
		"commas and lines":           {"a, b\n\tc,,d\r\n", []string{"a", "b", "c", "d"}},
		"commas in quotes":           {`a["b, c"],d="e \", f"`, []string{`a["b, c"]`, `d="e \", f"`}},
		"a backslash outside quotes": {`a\,b`, []string{`a\`, "b"}},
		"white space in brackets":    {"a[b = c], d", []string{"a[b = c]", "d"}},
		"brackets that do not close": {"a[b, c", []string{"a[b, c"}},
		"too many closing brackets":  {"a]], b", []string{"a]]", "b"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, SplitPaths(tc.list)); diff != "" {
				t.Errorf("paths (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestUnion(t *testing.T) {
	a, b := mustPaths(t, "service"), mustPaths(t, "podTemplate.spec.hostname", "volumeClaimTemplates")
	if diff := cmp.Diff("service,podTemplate.spec.hostname,volumeClaimTemplates", a.Union(b).String()); diff != "" {
		t.Errorf("Union (-want,+got):\n%s", diff)
	}
	if a.Len() != 1 || (PathSet{}).Union(b).Len() != 2 {
		t.Errorf("the sets themselves must not change")
	}
}

func FuzzParsePath(f *testing.F) {
	for _, seed := range []string{
		"podTemplate.spec.containers[name=python].env[name=HTTP_PROXY]", `podTemplate.spec.a["b\u0000.c"][*][0][d="e*"]=f*`, "volumeClaimTemplates[*]=x", `service="\ud800"`,
		"podTemplate.spec.volumes[name=kube-api-access-*]", `podTemplate.spec.nodeName=" , "`, "podTemplate.spec[", "spec.hostname",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		set, err := ParsePaths(path)
		if err != nil {
			return
		}
		text := set.String()
		again, err := ParsePaths(text)
		if err != nil {
			t.Fatalf("%q was written as %q, which is refused: %v", path, text, err)
		}
		if diff := cmp.Diff(set, again, cmp.AllowUnexported(PathSet{}, pattern{}, segment{}, valuePattern{})); diff != "" {
			t.Errorf("%q written as %q (-want,+got):\n%s", path, text, diff)
		}
		if split := SplitPaths("service, " + text + "\n"); !slices.Equal(split, []string{"service", text}) {
			t.Errorf("%q splits into %q", text, split)
		}
	})
}

func TestParseListRefusesTooMuch(t *testing.T) {
	path := "podTemplate.spec.containers[name=c].env[name=E]"
	cases := map[string]struct {
		list string
		want int
		err  string
	}{
		"some":                {path + ", " + path + "\n" + path, 3, ""},
		"none":                {" ", 0, ""},
		"as many as may be":   {strings.Repeat(path+",", MaxPaths), MaxPaths, ""},
		"one more":            {strings.Repeat(path+",", MaxPaths+1), 0, "65 paths are too many, at most 64: " + useFewer},
		"as long as may be":   {path + strings.Repeat(" ", MaxPathBytes-len(path)), 1, ""},
		"longer":              {path + strings.Repeat(" ", MaxPathBytes-len(path)+1), 0, "8193 bytes are too many, at most 8192: " + useFewer},
		"one that is no path": {path + ",nonsense", 0, `path "nonsense": accepted are paths that begin with ` + acceptedRoots},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			set, err := ParseList(tc.list)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if set.Len() != tc.want || text != tc.err {
				t.Errorf("ParseList() = %d paths, %q, want %d, %q", set.Len(), text, tc.want, tc.err)
			}
		})
	}
}
