package platform

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/revision"
)

func TestIsExtended(t *testing.T) {
	for resource, want := range map[string]bool{
		"cpu": false, "example.com/gpu": true, "kubernetes.io/x": false, "a.kubernetes.io/x": false,
		"requests.example.com/gpu": false, "hugepages-2Mi": false, "notkubernetes.io/x": true,
	} {
		if got := isExtended(resource); got != want {
			t.Errorf("isExtended(%q) = %t, want %t", resource, got, want)
		}
	}
}

// Each path is there for what the Pod itself says, and for nothing else.
func TestAdmittedPaths(t *testing.T) {
	type object = map[string]any
	type list = []any
	inContainer := func(fields object) changed {
		fields["name"] = "c"
		return set(list{fields}, "spec", "containers")
	}
	resources := func(requests, limits object) changed {
		return inContainer(object{"resources": object{"requests": requests, "limits": limits}})
	}
	ports := list{object{"containerPort": int64(80)}, object{"containerPort": "http"}, object{"name": "none"}}
	ranger := func(message string) changed { return annotated(limitRangerKey, message) }
	const nodeSelector, tolerations, affinity = podSpecPath + "nodeSelector", podSpecPath + "tolerations[*]", podSpecPath + "affinity.nodeAffinity"
	const container = podSpecPath + `containers[name="c"].`
	const profile = container + "securityContext.appArmorProfile."
	appArmor := func(container, profile string) changed {
		return annotated("container.apparmor.security.beta.kubernetes.io/"+container, profile)
	}
	for name, tc := range map[string]struct {
		changes []changed
		want    []string
	}{
		"nothing":                 {nil, nil},
		"a RuntimeClass":          {[]changed{set("kata", "spec", "runtimeClassName")}, []string{nodeSelector, tolerations}},
		"written to":              {[]changed{edited}, []string{nodeSelector, tolerations, affinity}},
		"requests like limits":    {[]changed{resources(object{"cpu": "1000m"}, object{"cpu": "1"})}, []string{container + `resources.requests["cpu"]`}},
		"requests unlike limits":  {[]changed{resources(object{"cpu": "1"}, object{"cpu": "2"})}, nil},
		"requests without limits": {[]changed{resources(object{"cpu": "0"}, object{"memory": "0"})}, nil},
		"no request to read":      {[]changed{resources(object{"cpu": "some"}, object{"cpu": "0"})}, nil},
		"no limit to read":        {[]changed{resources(object{"cpu": "0"}, object{"cpu": "some"})}, nil},
		"an extended resource":    {[]changed{resources(object{"example.com/gpu": "1"}, object{})}, []string{podSpecPath + `tolerations[key="example.com/gpu"]`}},
		"ports of its own":        {[]changed{inContainer(object{"ports": ports})}, nil},
		"ports of its node's": {
			[]changed{inContainer(object{"ports": ports}), set(true, "spec", "hostNetwork")}, []string{container + "ports[containerPort=80].hostPort=80"},
		},
		"keys of its labels": {
			[]changed{
				set(list{object{"matchLabelKeys": list{"a", "b"}}, object{"matchLabelKeys": "c"}}, "spec", "topologySpreadConstraints"),
				set(list{object{"mismatchLabelKeys": list{"d"}}}, "spec", "affinity", "podAffinity", "requiredDuringSchedulingIgnoredDuringExecution"),
				set(list{object{"podAffinityTerm": object{"matchLabelKeys": list{"e"}}}, object{"podAffinityTerm": "f"}},
					"spec", "affinity", "podAntiAffinity", "preferredDuringSchedulingIgnoredDuringExecution"),
			},
			[]string{
				podSpecPath + `topologySpreadConstraints[*].labelSelector.matchExpressions[key="a"]`,
				podSpecPath + `topologySpreadConstraints[*].labelSelector.matchExpressions[key="b"]`,
				podSpecPath + `affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[*].labelSelector.matchExpressions[key="d"]`,
				podSpecPath + `affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[*].podAffinityTerm.labelSelector.matchExpressions[key="e"]`,
			},
		},
		"what a LimitRange set": {
			[]changed{ranger("LimitRanger plugin set: cpu, memory request for container c; cpu limit for init container i")},
			[]string{
				container + `resources.requests["cpu"]`, container + `resources.requests["memory"]`,
				podSpecPath + `initContainers[name="i"].resources.limits["cpu"]`,
			},
		},
		"AppArmor of the runtime":          {[]changed{inContainer(object{}), appArmor("c", "runtime/default")}, []string{profile + "type=RuntimeDefault"}},
		"no AppArmor":                      {[]changed{inContainer(object{}), appArmor("c", "unconfined")}, []string{profile + "type=Unconfined"}},
		"AppArmor of the node":             {[]changed{inContainer(object{}), appArmor("c", `localhost/a"`)}, []string{profile + "type=Localhost", profile + `localhostProfile="a\""`}},
		"AppArmor that nobody knows":       {[]changed{inContainer(object{}), appArmor("c", "other")}, nil},
		"AppArmor of no container":         {[]changed{inContainer(object{}), appArmor("d", "unconfined")}, nil},
		"what it does not say it set":      {[]changed{ranger("cpu request for container c")}, nil},
		"what it says at too great length": {[]changed{ranger("LimitRanger plugin set: cpu request for container c" + strings.Repeat(" ", maxLimitRanger))}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, admitted(makePod("m", v2, tc.changes...))); diff != "" {
				t.Errorf("admitted() (-want,+got):\n%s", diff)
			}
		})
	}
}

// A Pod that would allow for more than a bound is compared without any of it.
func TestAdmittedPathsAreBounded(t *testing.T) {
	asks := func(resources int) *unstructured.Unstructured {
		requests := map[string]any{}
		for n := range resources {
			requests[fmt.Sprintf("example.com/%d", n)] = "1"
		}
		return makePod("m", v2, set([]any{map[string]any{"name": "c", "resources": map[string]any{"requests": requests}}}, "spec", "containers"))
	}
	for resources, want := range map[int]int{maxAdmitted: maxAdmitted, maxAdmitted + 1: 0} {
		if got := len(admitted(asks(resources))); got != want {
			t.Errorf("%d resources allow for %d paths, want %d", resources, got, want)
		}
	}
}

func TestPodInjections(t *testing.T) {
	listed, err := revision.ParsePaths("podTemplate.spec.hostname")
	if err != nil {
		t.Fatal(err)
	}
	kata := makePod("m", v2, set("kata", "spec", "runtimeClassName"))
	for name, tc := range map[string]struct {
		pod     *unstructured.Unstructured
		more    []string
		want    bool
		wantErr bool
	}{
		"of any Pod":      {pod: nil},
		"of a plain Pod":  {pod: makePod("m", v2)},
		"of this Pod":     {pod: kata, want: true},
		"the platform's":  {pod: nil, more: []string{podSpecPath + "nodeSelector"}, want: true},
		"what is no path": {pod: nil, more: []string{"]["}, wantErr: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := PodInjections(tc.pod, listed, tc.more...)
			if (err != nil) != tc.wantErr {
				t.Fatalf("error %v, want one: %t", err, tc.wantErr)
			}
			if err != nil {
				return
			}
			for path, want := range map[string]bool{podSpecPath + "nodeSelector": tc.want, podSpecPath + "hostname": true, podSpecPath + "overhead": true} {
				if slices.Contains(got.Strings(), path) != want {
					t.Errorf("%s is allowed: %t, want %t", path, !want, want)
				}
			}
		})
	}
}
