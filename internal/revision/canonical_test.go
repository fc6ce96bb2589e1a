package revision

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCanonicalForm(t *testing.T) {
	cases := map[string]struct {
		a, b string // specs of a Pod
		want bool
	}{
		"key order does not count":                      {"{hostname: a, subdomain: b}", "{subdomain: b, hostname: a}", true},
		"list order counts":                             {"{containers: [{name: a}, {name: b}]}", "{containers: [{name: b}, {name: a}]}", false},
		"null is absence":                               {"{hostname: null, affinity: null, containers: null}", "{}", true},
		"zero of a plain field is absence":              {"{hostname: '', hostNetwork: false, volumes: [], nodeSelector: {}}", "{}", true},
		"zero behind a pointer is not absence":          {"{enableServiceLinks: false}", "{}", false},
		"number zero behind a pointer is not absence":   {"{priority: 0}", "{}", false},
		"empty object behind a pointer is not absence":  {"{volumes: [{name: a, emptyDir: {}}]}", "{volumes: [{name: a}]}", false},
		"empty security context is not absence":         {"{securityContext: {}}", "{}", false},
		"empty resources are absence":                   {"{containers: [{name: a, resources: {limits: {}}}]}", "{containers: [{name: a}]}", true},
		"an empty selector is not an absent one":        {termYAML("namespaceSelector: {}"), termYAML(""), false},
		"empty selectors are equal":                     {termYAML("namespaceSelector: {matchLabels: {}}"), termYAML("namespaceSelector: {}"), true},
		"an empty element is an element":                {"{tolerations: [{}]}", "{}", false},
		"null as an element is its zero value":          {"{tolerations: [null]}", "{tolerations: [{}]}", true},
		"null as a string element is the empty string":  {commandYAML("[null]"), commandYAML(`[""]`), true},
		"null in a map is the zero value":               {"{nodeSelector: {a: null}}", "{nodeSelector: {a: ''}}", true},
		"an empty value in a map is a value":            {"{nodeSelector: {a: ''}}", "{}", false},
		"null as a quantity in a map is zero":           {"{overhead: {cpu: null}}", "{overhead: {cpu: '0'}}", true},
		"quantities by value: milli":                    {"{overhead: {cpu: 1000m}}", "{overhead: {cpu: 1}}", true},
		"quantities by value: binary":                   {"{overhead: {memory: 1Gi}}", "{overhead: {memory: 1073741824}}", true},
		"quantities by value: exponent":                 {"{overhead: {memory: 1e3}}", "{overhead: {memory: 1k}}", true},
		"quantities by value: fraction":                 {"{overhead: {cpu: 0.5}}", "{overhead: {cpu: 500m}}", true},
		"quantities that differ":                        {"{overhead: {cpu: 999m}}", "{overhead: {cpu: 1}}", false},
		"quantities behind pointers":                    {"{volumes: [{name: a, emptyDir: {sizeLimit: 1Ki}}]}", "{volumes: [{name: a, emptyDir: {sizeLimit: 1024}}]}", true},
		"a zero quantity behind a pointer is a value":   {"{volumes: [{name: a, emptyDir: {sizeLimit: 0}}]}", "{volumes: [{name: a, emptyDir: {}}]}", false},
		"a zero quantity in a plain field is absence":   {divisorYAML("divisor: '0'"), divisorYAML(""), true},
		"an environment variable is no quantity":        {envYAML("1000m"), envYAML("1"), false},
		"ports keep their type":                         {portYAML("80"), portYAML(`"80"`), false},
		"port zero is absence":                          {portYAML("0"), portYAML("null"), true},
		"an empty port name is not port zero":           {portYAML(`""`), portYAML("0"), false},
		"inlined fields are typed":                      {"{containers: [{name: a, envFrom: [{configMapRef: {name: ''}}]}]}", "{containers: [{name: a, envFrom: [{configMapRef: {}}]}]}", true},
		"unknown fields count":                          {"{fromNewerKubernetes: true}", "{}", false},
		"unknown fields count when false":               {"{fromNewerKubernetes: false}", "{}", false},
		"unknown fields count when empty":               {"{fromNewerKubernetes: {}}", "{}", false},
		"an unknown list counts when empty":             {"{fromNewerKubernetes: []}", "{}", false},
		"unknown null is absence":                       {"{fromNewerKubernetes: null}", "{}", true},
		"null inside of what is unknown is absence":     {"{fromNewerKubernetes: {a: null}}", "{fromNewerKubernetes: {}}", true},
		"null as an unknown element is an element":      {"{fromNewerKubernetes: [null]}", "{fromNewerKubernetes: []}", false},
		"unknown quantities are strings":                {"{fromNewerKubernetes: 1000m}", "{fromNewerKubernetes: '1'}", false},
		"field names are case-sensitive":                {"{hostName: a}", "{hostname: a}", false},
		"times by instant":                              {timeYAML("2026-01-02T03:04:05Z"), timeYAML("2026-01-02T04:04:05+01:00"), true},
		"times that differ":                             {timeYAML("2026-01-02T03:04:05Z"), timeYAML("2026-01-02T03:04:05+01:00"), false},
		"a quantity in a plain field is a value":        {divisorYAML("divisor: '1'"), divisorYAML(""), false},
		"a time in a plain field is a value":            {creationYAML("'2026-01-02T03:04:05Z'"), creationYAML("null"), false},
		"the zero time in a plain field is absence":     {creationYAML("'0001-01-01T00:00:00Z'"), creationYAML("null"), true},
		"a string that looks like a number is a string": {"{hostname: '1'}", "{hostname: '1.0'}", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a, b := mustPod(t, tc.a), mustPod(t, tc.b)
			if got := a.Hash() == b.Hash(); got != tc.want {
				t.Errorf("equal hashes: got %v, want %v\n%s\n%s", got, tc.want, a.JSON(), b.JSON())
			}
			if got := Equal(a, b, PathSet{}); got != tc.want {
				t.Errorf("Equal: got %v, want %v\n%s\n%s", got, tc.want, a.JSON(), b.JSON())
			}
			if got := len(Compare(a, b, PathSet{})) == 0; got != tc.want {
				t.Errorf("Compare finds nothing: got %v, want %v\n%s\n%s", got, tc.want, a.JSON(), b.JSON())
			}
		})
	}
}

func termYAML(field string) string {
	return "{affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: t, " + field + "}]}}}"
}

func commandYAML(list string) string { return "{containers: [{name: a, command: " + list + "}]}" }

func envYAML(value string) string {
	return "{containers: [{name: a, env: [{name: VAR, value: '" + value + "'}]}]}"
}

func divisorYAML(field string) string {
	return "{containers: [{name: a, env: [{name: VAR, valueFrom: {resourceFieldRef: {resource: limits.cpu, " + field + "}}}]}]}"
}

func portYAML(port string) string {
	return "{containers: [{name: a, livenessProbe: {tcpSocket: {port: " + port + "}}}]}"
}

func ephemeralYAML(metadata string) string {
	return "{volumes: [{name: a, ephemeral: {volumeClaimTemplate: {metadata: {" + metadata + "}, spec: {}}}}]}"
}

func timeYAML(at string) string { return ephemeralYAML("deletionTimestamp: '" + at + "'") }

func creationYAML(value string) string { return ephemeralYAML("creationTimestamp: " + value) }

func TestOnlyTheBlueprintCounts(t *testing.T) {
	base := mustSpec(t, threeContainers)
	cases := map[string]struct {
		from, to string
		want     bool
	}{
		"pod metadata":                 {"labels: {app: python}", "labels: {app: node}", true},
		"another field of the spec":    {"service: true", "service: true\nshutdownTime: '2026-01-01T00:00:00Z'", true},
		"service":                      {"service: true", "service: false", false},
		"no service":                   {"service: true", "", false},
		"name of a claim template":     {"{name: data}", "{name: other}", false},
		"label of a claim template":    {"{name: data}", "{name: data, labels: {a: b}}", false},
		"creation time of a claim":     {"{name: data}", "{name: data, creationTimestamp: null}", true},
		"empty status of a claim":      {"service: true", "  status: {}\nservice: true", true},
		"null in the status":           {"service: true", "  status: {phase: null}\nservice: true", true},
		"status of a claim":            {"service: true", "  status: {phase: Bound}\nservice: true", false},
		"storage in another format":    {"10Gi", "'10737418240'", true},
		"storage of a claim":           {"10Gi", "11Gi", false},
		"image":                        {"sandbox:v1", "sandbox:v2", false},
		"runtime class taken out":      {"runtimeClassName: gvisor", "", false},
		"another runtime class":        {"runtimeClassName: gvisor", "runtimeClassName: kata", false},
		"an environment variable more": {"- {name: TOKEN, value: hunter2}", "- {name: TOKEN, value: hunter2}\n      - {name: A, value: b}", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(threeContainers, tc.from) {
				t.Fatalf("the test spec does not contain %q", tc.from)
			}
			changed := mustSpec(t, strings.Replace(threeContainers, tc.from, tc.to, 1))
			if got := base.Hash() == changed.Hash(); got != tc.want {
				t.Errorf("equal hashes: got %v, want %v\n%s", got, tc.want, changed.JSON())
			}
		})
	}
}

// Hashes are stored in labels and object names: a change of any of these is a new scheme and needs a new prefix.
func TestHashesAreStable(t *testing.T) {
	cases := map[string]struct {
		spec     string
		wantJSON string
		want     string
	}{
		"empty": {"{}", `{}`, "v1-44136fa355b3678a"},
		"all of it": {
			threeContainers, "", "v1-92fad1a9e90ef0c2",
		},
		"scalars": {
			`{podTemplate: {spec: {hostname: "a\"b\\\n\u0001é", priority: 5, overhead: {a: 1500m, b: 1Gi, c: "3", d: "1e30", e: 1500u, f: 7n, g: -2Mi}, x: 1.5}}, service: false}`,
			`{"podTemplate":{"spec":{"hostname":"a\"b\\\n\u0001é","overhead":{"a":"1500m","b":"1Gi","c":"3","d":"1e30","e":"1500u","f":"7n","g":"-2Mi"},"priority":5,"x":1.5}},"service":false}`,
			"v1-8863c1935fa1ee9e",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := mustSpec(t, tc.spec)
			if tc.wantJSON != "" {
				if diff := cmp.Diff(tc.wantJSON, string(b.JSON())); diff != "" {
					t.Errorf("JSON (-want,+got):\n%s", diff)
				}
			}
			if got := b.Hash(); got != tc.want {
				t.Errorf("Hash: got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestErrorsNameTheField(t *testing.T) {
	cases := map[string]struct {
		spec map[string]any
		want string
	}{
		"quantity": {
			fromYAML(t, "{podTemplate: {spec: {containers: [{resources: {limits: {cpu: abc}}}]}}}"),
			`spec.podTemplate.spec.containers[0].resources.limits.cpu: must be a quantity`,
		},
		"quantity of a wrong type": {
			fromYAML(t, "{podTemplate: {spec: {containers: [{resources: {limits: {cpu: true}}}]}}}"),
			`spec.podTemplate.spec.containers[0].resources.limits.cpu: must be a quantity, is a boolean`,
		},
		"quantity that costs seconds to parse": {
			fromYAML(t, "{podTemplate: {spec: {overhead: {cpu: '1e-1000000000'}}}}"),
			`spec.podTemplate.spec.overhead.cpu: must be a quantity of at most 999 characters with an exponent of at most 999`,
		},
		"key with dots": {
			fromYAML(t, "{podTemplate: {spec: {nodeSelector: {kubernetes.io/os: 5}}}}"),
			`spec.podTemplate.spec.nodeSelector["kubernetes.io/os"]: must be a string, is an integer`,
		},
		"secret of a wrong type is not shown": {
			fromYAML(t, "{podTemplate: {spec: {containers: [{name: a}, {env: [{name: PIN, value: 1234}]}]}}}"),
			`spec.podTemplate.spec.containers[1].env[0].value: must be a string, is an integer`,
		},
		"list":           {fromYAML(t, "{podTemplate: {spec: {containers: {}}}}"), `spec.podTemplate.spec.containers: must be a list, is an object`},
		"element":        {fromYAML(t, "{podTemplate: {spec: {containers: [a]}}}"), `spec.podTemplate.spec.containers[0]: must be an object, is a string`},
		"map":            {fromYAML(t, "{podTemplate: {spec: {nodeSelector: []}}}"), `spec.podTemplate.spec.nodeSelector: must be an object, is a list`},
		"boolean":        {fromYAML(t, "{podTemplate: {spec: {hostNetwork: 'true'}}}"), `spec.podTemplate.spec.hostNetwork: must be true or false, is a string`},
		"integer":        {fromYAML(t, "{podTemplate: {spec: {priority: '5'}}}"), `spec.podTemplate.spec.priority: must be an integer, is a string`},
		"fraction":       {fromYAML(t, "{podTemplate: {spec: {priority: 5.5}}}"), `spec.podTemplate.spec.priority: must be an integer, is a number`},
		"32 bits":        {fromYAML(t, "{podTemplate: {spec: {priority: 2147483648}}}"), `spec.podTemplate.spec.priority: does not fit into 32 bits`},
		"64 bits":        {fromYAML(t, "{podTemplate: {spec: {activeDeadlineSeconds: 1.0e+30}}}"), `spec.podTemplate.spec.activeDeadlineSeconds: must be an integer, is a number`},
		"port":           {map[string]any{"podTemplate": map[string]any{"spec": fromYAML(t, portYAML("1.5"))}}, `spec.podTemplate.spec.containers[0].livenessProbe.tcpSocket.port: must be an integer or a string, is a number`},
		"time":           {map[string]any{"podTemplate": map[string]any{"spec": fromYAML(t, timeYAML("noon"))}}, `spec.podTemplate.spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.deletionTimestamp: must be a time (RFC 3339)`},
		"time type":      {map[string]any{"podTemplate": map[string]any{"spec": fromYAML(t, creationYAML("5"))}}, `spec.podTemplate.spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.creationTimestamp: must be a time, is an integer`},
		"pod template":   {fromYAML(t, "{podTemplate: 5}"), `spec.podTemplate: must be an object, is an integer`},
		"pod spec":       {fromYAML(t, "{podTemplate: {spec: []}}"), `spec.podTemplate.spec: must be an object, is a list`},
		"claim template": {fromYAML(t, "{volumeClaimTemplates: [{spec: {resources: {requests: {storage: ten}}}}]}"), `spec.volumeClaimTemplates[0].spec.resources.requests.storage: must be a quantity`},
		"service":        {fromYAML(t, "{service: 'yes'}"), `spec.service: must be true or false, is a string`},
		"no JSON":        {map[string]any{"podTemplate": map[string]any{"spec": map[string]any{"x": []any{struct{}{}}}}}, `spec.podTemplate.spec.x[0]: must be JSON, is of the Go type struct {}, which is not JSON`},
		"no number":      {map[string]any{"podTemplate": map[string]any{"spec": map[string]any{"x": math.NaN()}}}, `spec.podTemplate.spec.x: must be JSON, is a number`},
		"no UTF-8":       {map[string]any{"podTemplate": map[string]any{"spec": map[string]any{"hostname": "a\xff"}}}, `spec.podTemplate.spec.hostname: must be valid UTF-8`},
		"no UTF-8 key":   {map[string]any{"podTemplate": map[string]any{"spec": map[string]any{"nodeSelector": map[string]any{"\xff": "a"}}}}, `spec.podTemplate.spec.nodeSelector: the key "\xff" is not valid UTF-8`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b, err := FromSpec(tc.spec)
			if err == nil {
				t.Fatalf("no error, but %s", b.JSON())
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("error (-want,+got):\n%s", diff)
			}
			if !b.IsZero() {
				t.Errorf("with an error, the blueprint must be empty, is %s", b.JSON())
			}
		})
	}
	t.Run("of a Pod", func(t *testing.T) {
		_, err := FromPodSpec(map[string]any{"containers": "a"})
		if want := "spec.containers: must be a list, is a string"; err == nil || err.Error() != want {
			t.Errorf("error: got %v, want %s", err, want)
		}
	})
}

func TestGoNumbersAreAccepted(t *testing.T) {
	want := mustPod(t, "{priority: 5, x: 1}")
	for name, five := range map[string]any{"int": 5, "int32": int32(5), "int64": int64(5), "float64": 5.0, "json.Number": json.Number("5"), "json.Number with a point": json.Number("5.0")} {
		t.Run(name, func(t *testing.T) {
			got, err := FromPodSpec(map[string]any{"priority": five, "x": json.Number("1.0")})
			if err != nil {
				t.Fatalf("FromPodSpec: %v", err)
			}
			if diff := cmp.Diff(string(want.JSON()), string(got.JSON())); diff != "" {
				t.Errorf("JSON (-want,+got):\n%s", diff)
			}
		})
	}
}
