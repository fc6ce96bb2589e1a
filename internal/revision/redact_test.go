package revision

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRedactHidesEverythingButNames(t *testing.T) {
	b := mustPod(t, `{hostname: h, nodeSelector: {'': s3cret}, priority: 5, containers: [{name: c, image: i, env: [{name: A, value: s3cret}], ports: [{containerPort: 80, protocol: TCP}]}],
		volumes: [{name: v, emptyDir: {}}], tolerations: [{key: k}], x: {w: [z, null, 1.5]}}`)
	r := b.Redact()
	got := regexp.MustCompile(`sha256:[0-9a-f]{16}`).ReplaceAllString(string(r.JSON()), "#")
	want := `{"podTemplate":{"spec":{"containers":[{"env":[{"name":"A","value":"#"}],"image":"#","name":"c","ports":[{"containerPort":80,"protocol":"#"}]}],` +
		`"hostname":"#","nodeSelector":{"":"#"},"priority":"#","tolerations":[{"key":"#"}],"volumes":[{"emptyDir":{},"name":"v"}],"x":{"w":["#","#","#"]}}},` +
		`"redacted":{"hash":"` + b.Hash() + `","podHash":"` + b.PodOnly().Hash() + `"}}`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("JSON (-want,+got):\n%s", diff)
	}
	if r.Hash() != b.Hash() || r.PodOnly().Hash() != b.PodOnly().Hash() {
		t.Errorf("hashes: got %s and %s, want %s and %s", r.Hash(), r.PodOnly().Hash(), b.Hash(), b.PodOnly().Hash())
	}
	full := mustSpec(t, threeContainers)
	if got, want := full.Redact().PodOnly().Hash(), full.PodOnly().Hash(); got != want {
		t.Errorf("hash of the pod alone: got %s, want %s", got, want)
	}
	if again := r.Redact(); !again.Equal(r) {
		t.Errorf("redacted twice: %s", again.JSON())
	}
	if zero := (Blueprint{}).Redact(); !zero.IsZero() || zero.Hash() != emptyHash {
		t.Errorf("the empty blueprint redacted: %s", zero.JSON())
	}
}

func TestEqualValuesHaveDifferentDigests(t *testing.T) {
	r := mustPod(t, "{hostname: a, subdomain: a, nodeSelector: {a: a, b: a}, containers: [{name: c, args: [a, a], env: [{name: A, value: a}, {name: B, value: a}]}]}").Redact()
	digests := regexp.MustCompile(`sha256:[0-9a-f]{16}`).FindAllString(string(r.JSON()), -1)
	seen := map[string]bool{}
	for _, d := range digests {
		seen[d] = true
	}
	if len(digests) != 8 || len(seen) != 8 {
		t.Errorf("want 8 different digests, got %d of %d", len(seen), len(digests))
	}
}

func TestCompareRedacted(t *testing.T) {
	const dup = "{containers: [{name: c, ports: [{containerPort: 53, protocol: TCP}, {containerPort: 53, protocol: UDP}]}]}"
	const single = "{containers: [{name: c, ports: [{containerPort: 53, protocol: TCP}, {containerPort: 54, protocol: UDP}]}]}"
	cases := map[string]struct {
		want, got string
		allowed   []string
		paths     []string
	}{
		"equal":             {threeContainers, threeContainers, nil, nil},
		"image":             {threeContainers, strings.Replace(threeContainers, "sandbox:v1", "sandbox:v2", 1), nil, []string{"podTemplate.spec.containers[name=python].image"}},
		"secret":            {threeContainers, strings.Replace(threeContainers, "hunter2", "hunter3", 1), nil, []string{"podTemplate.spec.containers[name=python].env[name=TOKEN].value"}},
		"quantity":          {threeContainers, strings.Replace(threeContainers, "250m", "300m", 1), nil, []string{"podTemplate.spec.containers[name=python].resources.requests.cpu"}},
		"same quantity":     {threeContainers, strings.Replace(threeContainers, "250m", "0.25", 1), nil, nil},
		"claim template":    {threeContainers, strings.Replace(threeContainers, "10Gi", "11Gi", 1), nil, []string{"volumeClaimTemplates[0].spec.resources.requests.storage"}},
		"allowed":           {threeContainers, strings.Replace(threeContainers, "dnsPolicy", "nodeName: x\n    dnsPolicy", 1), []string{"podTemplate.spec.nodeName"}, nil},
		"less":              {threeContainers, strings.Replace(threeContainers, "runtimeClassName: gvisor", "", 1), nil, []string{"podTemplate.spec.runtimeClassName"}},
		"another name":      {threeContainers, strings.Replace(threeContainers, "name: TOKEN", "name: TOKEN2", 1), nil, []string{"podTemplate.spec.containers[name=python].env[name=TOKEN].name", "podTemplate.spec.containers[name=python].env[name=TOKEN].value", "podTemplate.spec.containers[name=python].env[name=TOKEN2].name", "podTemplate.spec.containers[name=python].env[name=TOKEN2].value"}},
		"keys not unique":   {podYAML(dup), podYAML(dup), nil, nil},
		"keys unique once":  {podYAML(single), podYAML(dup), nil, []string{"podTemplate.spec.containers[name=c].ports[1].containerPort"}},
		"keys unique there": {podYAML(dup), podYAML(single), nil, []string{"podTemplate.spec.containers[name=c].ports[1].containerPort"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			plainWant, plainGot, allowed := mustSpec(t, tc.want), mustSpec(t, tc.got), mustPaths(t, tc.allowed...)
			stored, err := Parse(plainWant.Redact().JSON())
			if err != nil {
				t.Fatalf("Parse: %v", err)
			}
			for pair, ab := range map[string][2]Blueprint{
				"redacted want":  {stored, plainGot},
				"redacted got":   {plainWant, plainGot.Redact()},
				"redacted twice": {stored, plainGot.Redact()},
				"plain":          {plainWant, plainGot},
			} {
				var paths []string
				for _, d := range Compare(ab[0], ab[1], allowed) {
					paths = append(paths, d.Path)
				}
				// The keys decide the path that digests are made of, so with keys that are unique in one of the lists only, two redacted
				// blueprints have more differences than there are.
				if pair == "redacted twice" && strings.HasPrefix(name, "keys unique") {
					if len(paths) == 0 {
						t.Errorf("%s: no difference", pair)
					}
					continue
				}
				if diff := cmp.Diff(tc.paths, paths); diff != "" {
					t.Errorf("%s: paths of the differences (-want,+got):\n%s", pair, diff)
				}
				if equal := Equal(ab[0], ab[1], allowed); equal != (len(tc.paths) == 0) {
					t.Errorf("%s: Equal: got %v", pair, equal)
				}
			}
		})
	}
}

func podYAML(spec string) string { return "{podTemplate: {spec: " + spec + "}}" }

func TestADigestAsAValueProvesNothing(t *testing.T) {
	want := mustPod(t, "{hostname: s3cret}").Redact()
	digest := regexp.MustCompile(`sha256:[0-9a-f]{16}`).FindString(string(want.JSON()))
	got := mustPod(t, "{hostname: '"+digest+"'}")
	if Equal(want, got, PathSet{}) {
		t.Errorf("a sandbox whose value is the digest %s equals the redacted one", digest)
	}
}
