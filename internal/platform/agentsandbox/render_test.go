package agentsandbox

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/revision"
	"github.com/freshbind/freshbind/test/builders"
)

func template() *builders.Template { return builders.MakeTemplate("ns", "python") }

func content(t *testing.T, sandbox *unstructured.Unstructured) revision.Blueprint {
	t.Helper()
	b, err := ContentOf(sandbox)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func checkEqual(t *testing.T, want, got revision.Blueprint) {
	t.Helper()
	if d := revision.Compare(want, got, revision.PathSet{}); len(d) > 0 {
		t.Errorf("rendering differs (want -> got): %s", revision.Summary(d, 10))
	}
	if want.Hash() != got.Hash() {
		t.Errorf("hash is %s, want %s", got.Hash(), want.Hash())
	}
}

func TestRenderMemberIsWhatUpstreamBuilds(t *testing.T) {
	cases := map[string]*builders.Template{
		"plain":                              template(),
		"own DNS policy":                     template().PodSpec("Default", "dnsPolicy"),
		"token wanted":                       template().PodSpec(true, "automountServiceAccountToken"),
		"token refused":                      template().PodSpec(false, "automountServiceAccountToken"),
		"nothing said of the network policy": template().Unset("spec", "networkPolicyManagement"),
		"network policy unmanaged":           template().Unmanaged(),
		"network policy of its own":          template().Set(map[string]any{}, "spec", "networkPolicy"),
		"own DNS config is replaced":         template().PodSpec(map[string]any{"nameservers": []any{"10.0.0.10"}}, "dnsConfig"),
		"volume claims and service":          template().VolumeClaim("data", "1Gi").Service(true),
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := RenderMember(tc.Obj())
			if err != nil {
				t.Fatal(err)
			}
			checkEqual(t, content(t, builders.MakeMember(testPool, tc.Obj()).Obj()), got)
		})
	}
}

func TestRenderMemberChangesWithWhatThePlatformDerives(t *testing.T) {
	plain, err := RenderMember(template().Obj())
	if err != nil {
		t.Fatal(err)
	}
	unmanaged, err := RenderMember(template().Unmanaged().Obj())
	if err != nil {
		t.Fatal(err)
	}
	if plain.Hash() == unmanaged.Hash() {
		t.Error("a template whose network policy decides the DNS has one hash for both")
	}
}

func TestRenderMemberRefusesWhatNothingCanBeBuiltFrom(t *testing.T) {
	cases := map[string]struct {
		template *unstructured.Unstructured
		want     string
	}{
		"no pod spec":  {template().Unset("spec", "podTemplate", "spec").Obj(), "spec.podTemplate.spec"},
		"bad quantity": {template().PodSpec(map[string]any{"cpu": "abc"}, "overhead").Obj(), "overhead"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, asMember := RenderMember(tc.template)
			_, plain := RenderPlain(tc.template)
			for what, err := range map[string]error{"RenderMember": asMember, "RenderPlain": plain} {
				if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "python") {
					t.Errorf("%s() error = %v, want one that names the template and %s", what, err, tc.want)
				}
			}
		})
	}
}

func TestRenderCold(t *testing.T) {
	two := func() *builders.Template {
		return template().Container("side", "side:1", "A", "template").InitContainer("init", "init:1")
	}
	claim := func() *builders.Claim { return builders.MakeClaim("ns", "c1") }
	env := func(name, value string) map[string]any { return map[string]any{"name": name, "value": value} }
	disk := func(name, size string) map[string]any {
		return map[string]any{"metadata": map[string]any{"name": name}, "spec": map[string]any{
			"accessModes": []any{"ReadWriteOnce"}, "resources": map[string]any{"requests": map[string]any{"storage": size}}}}
	}
	// in sets the env of the i-th container of a list, as upstream would.
	in := func(list string, i int, vars ...any) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) {
			containers, _, _ := unstructured.NestedSlice(u.Object, "spec", "podTemplate", "spec", list)
			containers[i].(map[string]any)["env"] = vars
			_ = unstructured.SetNestedSlice(u.Object, containers, "spec", "podTemplate", "spec", list)
		}
	}
	claims := func(vcts ...any) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) {
			_ = unstructured.SetNestedSlice(u.Object, vcts, "spec", "volumeClaimTemplates")
		}
	}
	cases := map[string]struct {
		template *builders.Template
		claim    *builders.Claim
		change   func(*unstructured.Unstructured)
	}{
		"nothing of its own":           {two(), claim(), func(*unstructured.Unstructured) {}},
		"env for the default":          {two().EnvPolicy("Allowed"), claim().Env("", "X", "1"), in("containers", 0, env("X", "1"))},
		"env for a named container":    {two().EnvPolicy("Allowed"), claim().Env("side", "X", "1"), in("containers", 1, env("A", "template"), env("X", "1"))},
		"env for an init container":    {two().EnvPolicy("Allowed"), claim().Env("init", "X", "1"), in("initContainers", 0, env("X", "1"))},
		"env that overrides":           {two().EnvPolicy("Overrides"), claim().Env("side", "A", "claim"), in("containers", 1, env("A", "claim"))},
		"empty value":                  {two().EnvPolicy("Allowed"), claim().Env("", "X", ""), in("containers", 0, map[string]any{"name": "X"})},
		"volumes, the template's only": {two().VolumeClaim("data", "1Gi").VolumeClaimPolicy("Overrides"), claim(), func(*unstructured.Unstructured) {}},
		"volumes beside the template":  {two().VolumeClaim("data", "1Gi").VolumeClaimPolicy("Allowed"), claim().VolumeClaim("more", "2Gi"), claims(disk("data", "1Gi"), disk("more", "2Gi"))},
		"volume instead of a template": {two().VolumeClaim("data", "1Gi").VolumeClaim("z", "1Gi").VolumeClaimPolicy("Overrides"), claim().VolumeClaim("data", "2Gi"), claims(disk("data", "2Gi"), disk("z", "1Gi"))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := builders.MakeColdStart(tc.claim.Obj(), tc.template.Obj()).Obj()
			tc.change(want)
			template := tc.template.Obj()
			before := template.DeepCopy()
			got, err := renderCold(template, tc.claim.Obj())
			if err != nil {
				t.Fatal(err)
			}
			checkEqual(t, content(t, want), got)
			if !equalObjects(before, template) {
				t.Error("rendering changed the template")
			}
		})
	}
}

// A container that gets no variable has no empty list of them either: a repair would
// write it.
func TestRenderColdLeavesOtherContainersAlone(t *testing.T) {
	source := template().Container("side", "side:1").EnvPolicy("Allowed").Obj()
	spec, err := coldSpec(source, builders.MakeClaim("ns", "c1").Env("side", "X", "1").Obj())
	if err != nil {
		t.Fatal(err)
	}
	containers := objects(spec["podTemplate"].(map[string]any)["spec"].(map[string]any), "containers")
	if _, has := containers[0]["env"]; has || len(objects(containers[1], "env")) != 1 {
		t.Errorf("containers are %v", containers)
	}
}

func equalObjects(a, b *unstructured.Unstructured) bool {
	x, errX := a.MarshalJSON()
	y, errY := b.MarshalJSON()
	return errX == nil && errY == nil && string(x) == string(y)
}

// One memory serves every template: were two versions of one taken for the same,
// every stale member would be fresh.
func TestMemoTellsVersionsApart(t *testing.T) {
	var memo Memo
	for name, version := range map[string]*unstructured.Unstructured{
		"the first":                 template().Image("sandbox:v1").RV(1).Generation(1).Obj(),
		"the next":                  template().Image("sandbox:v2").RV(2).Generation(2).Obj(),
		"another of that name":      template().Image("sandbox:v3").UID("second").RV(3).Generation(1).Obj(),
		"its next":                  template().Image("sandbox:v4").UID("second").RV(4).Generation(2).Obj(),
		"a label on the first":      template().Image("sandbox:v1").Label("a", "b").RV(5).Generation(1).Obj(),
		"of another name and a UID": builders.MakeTemplate("ns", "other").Image("sandbox:v5").RV(1).Generation(1).Obj(),
	} {
		want, err := RenderMember(version)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			got, err := memo.Render(version)
			if err != nil {
				t.Fatal(err)
			}
			if got.Hash() != want.Hash() {
				t.Errorf("%s is rendered as another version", name)
			}
		}
	}
}

func TestRenderColdSaysWhatTheTemplateRefuses(t *testing.T) {
	claim := func() *builders.Claim { return builders.MakeClaim("ns", "c1") }
	cases := map[string]struct {
		template *builders.Template
		claim    *builders.Claim
		want     string
	}{
		"env disallowed":               {template(), claim().Env("", "X", "1"), "envVarsInjectionPolicy"},
		"env override under Allowed":   {template().Container("side", "s", "A", "1").EnvPolicy("Allowed"), claim().Env("side", "A", "2"), `env "A"`},
		"env for an unknown container": {template().EnvPolicy("Allowed"), claim().Env("nope", "A", "2"), `container "nope"`},
		"env, nobody says how":         {template().EnvPolicy("Sometimes"), claim().Env("", "X", "1"), "envVarsInjectionPolicy"},
		"volumes, nobody says how":     {template().VolumeClaimPolicy("Sometimes"), claim().VolumeClaim("d", "1Gi"), "volumeClaimTemplatesPolicy"},
		"volumes disallowed":           {template(), claim().VolumeClaim("d", "1Gi"), "volumeClaimTemplatesPolicy"},
		"volume override, Allowed":     {template().VolumeClaim("d", "1Gi").VolumeClaimPolicy("Allowed"), claim().VolumeClaim("d", "1Gi"), `volume "d"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := renderCold(tc.template.Obj(), tc.claim.Obj())
			var refused *unrenderableError
			if !errors.As(err, &refused) || !strings.Contains(refused.why, tc.want) {
				t.Errorf("renderCold() error = %v, want a refusal that says %s", err, tc.want)
			}
		})
	}
}

// What the API server and admission add to a Pod must not make it differ from
// its Sandbox; anything else must.
func TestPodEqualsItsSandbox(t *testing.T) {
	// The volume "work" is not a Pod's: a volumeClaimTemplate has its name.
	source := template().VolumeClaim("data", "1Gi").VolumeClaim("work", "1Gi").PodSpec([]any{volume("scratch", nil), volume("work", nil)}, "volumes").Obj()
	member := builders.MakeMember(testPool, source).Name("python-abc").Obj()
	claimed := func(name string) any { return volume("work", map[string]any{"claimName": name}) }
	stored := func() *builders.Pod { return builders.MakePod(member).Stored("node-1") }
	cases := map[string]struct {
		pod  *builders.Pod
		want bool
	}{
		"as created":                 {builders.MakePod(member), true},
		"as stored":                  {stored(), true},
		"another image":              {stored().Set([]any{map[string]any{"name": "python", "image": "other"}}, "spec", "containers"), false},
		"a runtime class":            {stored().Set("kata", "spec", "runtimeClassName"), false},
		"another restart policy":     {stored().Set("Never", "spec", "restartPolicy"), false},
		"another service account":    {stored().Set("admin", "spec", "serviceAccountName"), false},
		"a security context":         {stored().Set(map[string]any{"runAsUser": int64(0)}, "spec", "securityContext"), false},
		"the empty security context": {stored().Set(map[string]any{}, "spec", "securityContext"), true},
		"volumes of its own claims":  {stored().Set([]any{volume("scratch", nil), claimed("work-python-abc")}, "spec", "volumes"), true},
		"a volume of another's":      {stored().Set([]any{volume("scratch", nil), claimed("work-python-xyz")}, "spec", "volumes"), false},
		"what the node has":          {stored().Set([]any{volume("scratch", nil), map[string]any{"name": "work", "hostPath": map[string]any{"path": "/"}}}, "spec", "volumes"), false},
		"a volume less":              {stored().Set([]any{claimed("work-python-abc")}, "spec", "volumes"), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod, err := podOf(tc.pod.Obj())
			if err != nil {
				t.Fatal(err)
			}
			allowed, err := (&Platform{}).podInjections(member, tc.pod.Obj(), revision.PathSet{})
			if err != nil {
				t.Fatal(err)
			}
			d := revision.Compare(content(t, member).PodOnly(), pod.Content, allowed)
			if got := len(d) == 0; got != tc.want {
				t.Errorf("equal is %t, want %t: %s", got, tc.want, revision.Summary(d, 10))
			}
		})
	}
}

// volume is one of a claim, or an empty one.
func volume(name string, claim map[string]any) any {
	if claim == nil {
		return map[string]any{"name": name, "emptyDir": map[string]any{}}
	}
	return map[string]any{"name": name, "persistentVolumeClaim": claim}
}
