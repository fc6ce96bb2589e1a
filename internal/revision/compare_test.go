package revision

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCompare(t *testing.T) {
	cases := map[string]struct {
		want, got string // specs of a Pod
		diffs     []string
		roots     []string // where they are not the paths
	}{
		"equal": {"{hostname: a}", "{hostname: a}", nil, nil},
		"changed leaf": {
			"{containers: [{name: c, image: 'a:v1'}]}", "{containers: [{name: c, image: 'a:v2'}]}",
			[]string{`containers[name=c].image: "a:v1" -> "a:v2"`}, nil,
		},
		"leaf more":  {"{}", "{runtimeClassName: kata}", []string{`runtimeClassName: (absent) -> "kata"`}, nil},
		"leaf less":  {"{runtimeClassName: kata}", "{}", []string{`runtimeClassName: "kata" -> (absent)`}, nil},
		"bool":       {"{enableServiceLinks: true}", "{enableServiceLinks: false}", []string{`enableServiceLinks: true -> false`}, nil},
		"empty leaf": {"{volumes: [{name: a, emptyDir: {}}]}", "{volumes: [{name: a}]}", []string{`volumes[name=a].emptyDir: {} -> (absent)`}, nil},
		"an empty object that has got something": {
			"{volumes: [{name: a, emptyDir: {}}]}", "{volumes: [{name: a, emptyDir: {medium: Memory}}]}",
			[]string{`volumes[name=a].emptyDir.medium: (absent) -> "Memory"`}, nil,
		},
		"the environment": {
			"{containers: [{name: c, env: [{name: A, value: s3cret}]}]}", "{containers: [{name: c, env: [{name: A, value: other}, {name: B, value: more}]}]}",
			[]string{`containers[name=c].env[name=A].value: "s3cret" -> "other"`, `containers[name=c].env[name=B].name: (absent) -> "B"`, `containers[name=c].env[name=B].value: (absent) -> "more"`},
			[]string{"podTemplate.spec.containers[name=c].env[name=A].value", "podTemplate.spec.containers[name=c].env[name=B]", "podTemplate.spec.containers[name=c].env[name=B]"},
		},
		"HTTP headers": {
			headerYAML("a"), headerYAML("b"),
			[]string{`containers[name=c].livenessProbe.httpGet.httpHeaders[0].value: "a" -> "b"`}, nil,
		},
		"sources of the environment": {
			"{containers: [{name: c, env: [{name: A, valueFrom: {fieldRef: {fieldPath: a}}}]}]}", "{containers: [{name: c, env: [{name: A, valueFrom: {fieldRef: {fieldPath: b}}}]}]}",
			[]string{`containers[name=c].env[name=A].valueFrom.fieldRef.fieldPath: "a" -> "b"`}, nil,
		},
		"an element in front": {
			"{containers: [{name: a}]}", "{containers: [{name: b}, {name: a}]}",
			[]string{`containers[name=b].name: (absent) -> "b"`}, []string{"podTemplate.spec.containers[name=b]"},
		},
		"an element less": {
			"{containers: [{name: b}, {name: a}]}", "{containers: [{name: a}]}",
			[]string{`containers[name=b].name: "b" -> (absent)`}, []string{"podTemplate.spec.containers[name=b]"},
		},
		"another order": {
			"{containers: [{name: a}, {name: b}, {name: c}]}", "{containers: [{name: x}, {name: b}, {name: a}]}",
			[]string{`containers[name=c].name: "c" -> (absent)`, `containers: ["a","b"] -> ["b","a"]`, `containers[name=x].name: (absent) -> "x"`},
			[]string{"podTemplate.spec.containers[name=c]", "podTemplate.spec.containers", "podTemplate.spec.containers[name=x]"},
		},
		"mounts are told apart by their path": {
			"{containers: [{name: c, volumeMounts: [{name: v, mountPath: /a}, {name: v, mountPath: /b}]}]}",
			"{containers: [{name: c, volumeMounts: [{name: v, mountPath: /a}, {name: v, mountPath: /x}, {name: v, mountPath: /b, readOnly: true}]}]}",
			[]string{
				`containers[name=c].volumeMounts[mountPath=/b].readOnly: (absent) -> true`,
				`containers[name=c].volumeMounts[mountPath=/x].mountPath: (absent) -> "/x"`,
				`containers[name=c].volumeMounts[mountPath=/x].name: (absent) -> "v"`,
			},
			[]string{"podTemplate.spec.containers[name=c].volumeMounts[mountPath=/b].readOnly", "podTemplate.spec.containers[name=c].volumeMounts[mountPath=/x]", "podTemplate.spec.containers[name=c].volumeMounts[mountPath=/x]"},
		},
		"the same key twice: by position": {
			"{containers: [{name: c, ports: [{containerPort: 53, protocol: TCP}, {containerPort: 53, protocol: UDP}]}]}",
			"{containers: [{name: c, ports: [{containerPort: 53, protocol: UDP}, {containerPort: 53, protocol: UDP}]}]}",
			[]string{`containers[name=c].ports[0].protocol: "TCP" -> "UDP"`}, nil,
		},
		"a key is missing: by position": {
			"{containers: [{name: c, ports: [{hostPort: 1}]}]}", "{containers: [{name: c, ports: [{hostPort: 2}]}]}",
			[]string{`containers[name=c].ports[0].hostPort: 1 -> 2`}, nil,
		},
		"one key is missing: by position": {
			"{containers: [{name: c, ports: [{hostPort: 1}, {containerPort: 80}]}]}", "{containers: [{name: c, ports: [{containerPort: 80}, {hostPort: 1}]}]}",
			[]string{
				`containers[name=c].ports[0].containerPort: (absent) -> 80`, `containers[name=c].ports[0].hostPort: 1 -> (absent)`,
				`containers[name=c].ports[1].containerPort: 80 -> (absent)`, `containers[name=c].ports[1].hostPort: (absent) -> 1`,
			}, nil,
		},
		"keys that are numbers": {
			"{containers: [{name: c, ports: [{containerPort: 80}]}]}", "{containers: [{name: c, ports: [{containerPort: 80, name: http}]}]}",
			[]string{`containers[name=c].ports[containerPort=80].name: (absent) -> "http"`}, nil,
		},
		"lists without keys: by position": {
			"{tolerations: [{key: a}]}", "{tolerations: [{key: b}, {key: a}]}",
			[]string{`tolerations[0].key: "a" -> "b"`, `tolerations[1].key: (absent) -> "a"`},
			[]string{"podTemplate.spec.tolerations[0].key", "podTemplate.spec.tolerations"},
		},
		"scalars in a list": {
			"{containers: [{name: c, command: [a, b, c]}]}", "{containers: [{name: c, command: [a, x]}]}",
			[]string{`containers[name=c].command[1]: "b" -> "x"`, `containers[name=c].command[2]: "c" -> (absent)`},
			[]string{"podTemplate.spec.containers[name=c].command[1]", "podTemplate.spec.containers[name=c].command"},
		},
		"a tree more": {
			"{}", "{dnsConfig: {nameservers: [a, b], options: [{name: o}]}}",
			[]string{`dnsConfig.nameservers[0]: (absent) -> "a"`, `dnsConfig.nameservers[1]: (absent) -> "b"`, `dnsConfig.options[0].name: (absent) -> "o"`},
			[]string{"podTemplate.spec.dnsConfig", "podTemplate.spec.dnsConfig", "podTemplate.spec.dnsConfig"},
		},
		"a keyed list more": {
			"{}", "{volumes: [{name: a, emptyDir: {}}]}",
			[]string{`volumes[name=a].emptyDir: (absent) -> {}`, `volumes[name=a].name: (absent) -> "a"`},
			[]string{"podTemplate.spec.volumes[name=a]", "podTemplate.spec.volumes[name=a]"},
		},
		"another type in an unknown field": {
			"{x: {a: 1}}", "{x: [2]}",
			[]string{`x.a: 1 -> (absent)`, `x[0]: (absent) -> 2`}, []string{"podTemplate.spec.x", "podTemplate.spec.x"},
		},
		"a tree in place of a list": {
			"{x: [2]}", "{x: {a: 1}}",
			[]string{`x[0]: 2 -> (absent)`, `x.a: (absent) -> 1`}, []string{"podTemplate.spec.x", "podTemplate.spec.x"},
		},
		"a field without a name is no key": {
			"{x: [{'': a, b: c}]}", "{x: [{'': a, b: d}]}", []string{`x[0].b: "c" -> "d"`}, nil,
		},
		"a scalar in place of a tree": {"{x: {a: 1}}", "{x: 1}", []string{`x.a: 1 -> (absent)`, `x: (absent) -> 1`}, []string{"podTemplate.spec.x", "podTemplate.spec.x"}},
		"null in an unknown list":     {"{x: [null]}", "{x: [1]}", []string{`x[0]: null -> 1`}, nil},
		"keys with dots":              {"{nodeSelector: {a.b/c: '1'}}", "{nodeSelector: {a.b/c: '2'}}", []string{`nodeSelector["a.b/c"]: "1" -> "2"`}, nil},
		"names that need quotes": {
			"{volumes: [{name: 'a]*'}]}", "{volumes: [{name: 'a]*', emptyDir: {}}]}",
			[]string{`volumes[name="a]*"].emptyDir: (absent) -> {}`}, nil,
		},
		"long values are cut": {
			"{}", "{hostname: " + strings.Repeat("é", 100) + "}", []string{`hostname: (absent) -> "` + strings.Repeat("é", 63) + "…"}, nil,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want, got := mustPod(t, tc.want), mustPod(t, tc.got)
			diffs := Compare(want, got, PathSet{})
			var texts, roots, paths []string
			for _, d := range diffs {
				texts = append(texts, raw(d))
				roots = append(roots, d.Root)
				paths = append(paths, d.Path)
			}
			if diff := cmp.Diff(tc.diffs, texts); diff != "" {
				t.Errorf("differences (-want,+got):\n%s", diff)
			}
			if tc.roots == nil {
				tc.roots = paths
			}
			if diff := cmp.Diff(tc.roots, roots); diff != "" {
				t.Errorf("roots (-want,+got):\n%s", diff)
			}
			if _, err := ParsePaths(append(paths, roots...)...); err != nil {
				t.Errorf("the paths must be in the grammar: %v", err)
			}
			if equal := Equal(want, got, PathSet{}); equal != (len(diffs) == 0) {
				t.Errorf("Equal: got %v with the differences %v", equal, diffs)
			}
		})
	}
}

// raw shows what String hides.
func raw(d Difference) string {
	return shortPath(d.Path) + ": " + display(d.Want) + " -> " + display(d.Got)
}

func headerYAML(value string) string {
	return "{containers: [{name: c, livenessProbe: {httpGet: {port: 80, httpHeaders: [{name: Authorization, value: " + value + "}]}}}]}"
}

func TestAllowedPaths(t *testing.T) {
	const base = "{containers: [{name: c, env: [{name: A, value: a}]}], tolerations: [{key: a}]}"
	cases := map[string]struct {
		want, got string
		allowed   []string
		diffs     []string
	}{
		"a leaf":                      {"{}", "{nodeName: x}", []string{"podTemplate.spec.nodeName"}, nil},
		"another leaf":                {"{}", "{nodeName: x}", []string{"podTemplate.spec.node"}, []string{"podTemplate.spec.nodeName"}},
		"a leaf that want has":        {"{nodeName: m}", "{nodeName: x}", []string{"podTemplate.spec.nodeName"}, []string{"podTemplate.spec.nodeName"}},
		"a leaf that got has not":     {"{nodeName: m}", "{}", []string{"podTemplate.spec.nodeName"}, []string{"podTemplate.spec.nodeName"}},
		"below a path":                {"{}", "{dnsConfig: {nameservers: [a], searches: [b]}}", []string{"podTemplate.spec.dnsConfig"}, nil},
		"below a path, beside want":   {"{dnsConfig: {nameservers: [a]}}", "{dnsConfig: {nameservers: [a, b], searches: [b]}}", []string{"podTemplate.spec.dnsConfig"}, nil},
		"a part of what is more":      {"{}", "{dnsConfig: {nameservers: [a], searches: [b]}}", []string{"podTemplate.spec.dnsConfig.searches"}, []string{"podTemplate.spec.dnsConfig.nameservers[0]"}},
		"an empty leaf":               {"{}", "{securityContext: {}}", []string{"podTemplate.spec.securityContext"}, nil},
		"an element by name":          {base, strings.Replace(base, "[{name: A", "[{name: B, value: b}, {name: A", 1), []string{"podTemplate.spec.containers[name=c].env[name=B]"}, nil},
		"an element of another name":  {base, strings.Replace(base, "[{name: A", "[{name: B}, {name: A", 1), []string{"podTemplate.spec.containers[name=c].env[name=C]"}, []string{"podTemplate.spec.containers[name=c].env[name=B].name"}},
		"of another container":        {base, strings.Replace(base, "[{name: A", "[{name: B}, {name: A", 1), []string{"podTemplate.spec.containers[name=d].env[name=B]"}, []string{"podTemplate.spec.containers[name=c].env[name=B].name"}},
		"of any container":            {base, strings.Replace(base, "[{name: A", "[{name: B}, {name: A", 1), []string{"podTemplate.spec.containers[*].env[name=B]"}, nil},
		"an element that want has":    {base, strings.Replace(base, "value: a", "value: b", 1), []string{"podTemplate.spec.containers[*].env[name=A]"}, []string{"podTemplate.spec.containers[name=c].env[name=A].value"}},
		"names that begin alike":      {"{}", "{volumes: [{name: kube-api-access-x7, emptyDir: {}}]}", []string{"podTemplate.spec.volumes[name=kube-api-access-*]"}, nil},
		"names that do not":           {"{}", "{volumes: [{name: kube-api}]}", []string{"podTemplate.spec.volumes[name=kube-api-access-*]"}, []string{"podTemplate.spec.volumes[name=kube-api].name"}},
		"a quoted name is no pattern": {"{}", "{volumes: [{name: ab}]}", []string{`podTemplate.spec.volumes[name="a*"]`}, []string{"podTemplate.spec.volumes[name=ab].name"}},
		"an element without key is not the injected one": {
			"{containers: [{name: c, env: [{}, {}]}]}", "{containers: [{name: c, env: [{}, {name: I, value: x}]}]}",
			[]string{"podTemplate.spec.containers[*].env[name=I]"}, []string{"podTemplate.spec.containers[name=c].env[1].name"},
		},
		"a field without a name is no key": {"{x: [{}]}", "{x: [{'': 1}]}", []string{`podTemplate.spec.x[0][""]`}, nil},
		"an element has no name":           {"{}", "{tolerations: [{key: a}]}", []string{`podTemplate.spec.tolerations[""]`}, []string{"podTemplate.spec.tolerations[0].key"}},
		"by a field that is no key": {
			"{containers: [{name: c}]}", "{containers: [{name: c, volumeMounts: [{name: token-1, mountPath: /t}]}]}",
			[]string{"podTemplate.spec.containers[*].volumeMounts[name=token-*]"}, nil,
		},
		"a position":                      {base, strings.Replace(base, "[{key: a}]", "[{key: a}, {key: b}]", 1), []string{"podTemplate.spec.tolerations[1]"}, nil},
		"another position":                {base, strings.Replace(base, "[{key: a}]", "[{key: a}, {key: b}]", 1), []string{"podTemplate.spec.tolerations[0]"}, []string{"podTemplate.spec.tolerations[1].key"}},
		"appended to a list without keys": {base, strings.Replace(base, "[{key: a}]", "[{key: a}, {key: b}]", 1), []string{"podTemplate.spec.tolerations"}, nil},
		"put before a list without keys":  {base, strings.Replace(base, "[{key: a}]", "[{key: b}, {key: a}]", 1), []string{"podTemplate.spec.tolerations"}, []string{"podTemplate.spec.tolerations[0].key"}},
		"the value":                       {"{}", "{restartPolicy: Always}", []string{"podTemplate.spec.restartPolicy=Always"}, nil},
		"another value":                   {"{}", "{restartPolicy: Never}", []string{"podTemplate.spec.restartPolicy=Always"}, []string{"podTemplate.spec.restartPolicy"}},
		"a boolean":                       {"{}", "{enableServiceLinks: true}", []string{"podTemplate.spec.enableServiceLinks=true"}, nil},
		"another boolean":                 {"{}", "{enableServiceLinks: false}", []string{"podTemplate.spec.enableServiceLinks=true"}, []string{"podTemplate.spec.enableServiceLinks"}},
		"a number":                        {"{}", "{terminationGracePeriodSeconds: 30}", []string{"podTemplate.spec.terminationGracePeriodSeconds=30"}, nil},
		"a quoted number is a string":     {"{}", "{terminationGracePeriodSeconds: 30}", []string{`podTemplate.spec.terminationGracePeriodSeconds="30"`}, []string{"podTemplate.spec.terminationGracePeriodSeconds"}},
		"an empty object as a value":      {"{}", "{securityContext: {}}", []string{"podTemplate.spec.securityContext={}"}, nil},
		"no value below":                  {"{}", "{securityContext: {runAsUser: 5}}", []string{"podTemplate.spec.securityContext=5"}, []string{"podTemplate.spec.securityContext.runAsUser"}},
		"a value in a tree":               {"{}", "{dnsConfig: {nameservers: [a]}}", []string{"podTemplate.spec.dnsConfig.nameservers[0]=a"}, nil},
		"values that begin alike":         {"{}", "{nodeName: node-1}", []string{"podTemplate.spec.nodeName=node-*"}, nil},
		"a key with dots":                 {"{}", "{nodeSelector: {a.b/c: d}}", []string{`podTemplate.spec.nodeSelector["a.b/c"]`}, nil},
		"a selector is for lists":         {"{}", "{nodeSelector: {name: d}}", []string{`podTemplate.spec.nodeSelector[*]`}, []string{"podTemplate.spec.nodeSelector.name"}},
		"order is not an addition":        {"{containers: [{name: a}, {name: b}]}", "{containers: [{name: b}, {name: a}]}", []string{"podTemplate.spec.containers"}, []string{"podTemplate.spec.containers"}},
		"several":                         {"{}", "{nodeName: x, hostname: h, priority: 0}", []string{"podTemplate.spec.nodeName", "podTemplate.spec.priority=0"}, []string{"podTemplate.spec.hostname"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want, got, allowed := mustPod(t, tc.want), mustPod(t, tc.got), mustPaths(t, tc.allowed...)
			var paths []string
			for _, d := range Compare(want, got, allowed) {
				paths = append(paths, d.Path)
			}
			if diff := cmp.Diff(tc.diffs, paths); diff != "" {
				t.Errorf("paths of the differences (-want,+got):\n%s", diff)
			}
			if equal := Equal(want, got, allowed); equal != (len(tc.diffs) == 0) {
				t.Errorf("Equal: got %v", equal)
			}
		})
	}
}

// What a webhook adds to a sandbox must be allowed by the paths that we propose for it.
func TestInjectedPathsAllowWhatWasInjected(t *testing.T) {
	want := mustSpec(t, threeContainers)
	injected := strings.NewReplacer(
		"    tolerations:\n", "    serviceAccountName: default\n    tolerations:\n",
		"effect: NoSchedule}\n", "effect: NoSchedule}\n    - {key: late, operator: Exists}\n",
		"    - name: sidecar\n", "    - {name: istio-proxy, image: 'proxy:1', env: [{name: SECRET, value: s3cret}], securityContext: {runAsUser: 1337}}\n    - name: sidecar\n",
		"service: true\n", "- metadata: {name: more}\nservice: true\n",
	).Replace(threeContainers)
	got := mustSpec(t, injected)
	diffs := Compare(want, got, PathSet{})
	paths := injectedPaths(diffs)
	wantPaths := []string{
		"podTemplate.spec.containers[name=istio-proxy]", "podTemplate.spec.serviceAccountName", "podTemplate.spec.tolerations", "volumeClaimTemplates",
	}
	if diff := cmp.Diff(wantPaths, paths); diff != "" {
		t.Errorf("paths (-want,+got):\n%s", diff)
	}
	if left := Compare(want, got, mustPaths(t, paths...)); len(left) > 0 {
		t.Errorf("still different: %v", left)
	}
	text := Summary(diffs, 2)
	wantText := `containers[name=istio-proxy]: added (5 fields); serviceAccountName: added; and 3 more`
	if diff := cmp.Diff(wantText, text); diff != "" {
		t.Errorf("Summary (-want,+got):\n%s", diff)
	}
	if all := Summary(diffs, 0); strings.Contains(all, "s3cret") || strings.Contains(all, "more") && strings.Contains(all, "and ") {
		t.Errorf("Summary without a limit: %s", all)
	}
	if left := injectedPaths(Compare(got, want, PathSet{})); len(left) > 0 {
		t.Errorf("nothing is added the other way round, but: %v", left)
	}
}

// injectedPaths returns the paths that would allow what got has and want has not, ready for ParsePaths: the roots of those differences,
// sorted. It is empty if nothing of the sort is among diffs.
func injectedPaths(diffs []Difference) []string {
	var paths []string
	for _, d := range diffs {
		if d.Want == "" {
			paths = append(paths, d.Root)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}
