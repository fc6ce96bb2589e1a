package chart

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// everything are values with which the chart makes all of its Pods.
func everything(more ...string) []string {
	return append(set("scheduling.mode=SecondScheduler", "scheduling.kubeSchedulerImage=scheduler:v1", "routes.enabled=true",
		"routes.tokenSecret=tokens", "sentinel.enabled=true", "sentinel.gatewayServices={a/b}"), append(set(more...), certManager)...)
}

// podsOf are the Pods that objects make, by kind and name.
func podsOf(t *testing.T, objects []*unstructured.Unstructured) map[string]corev1.PodSpec {
	t.Helper()
	pods := map[string]corev1.PodSpec{}
	for _, o := range objects {
		at := map[string][]string{"Pod": {"spec"}, "Deployment": {"spec", "template", "spec"}, "Job": {"spec", "template", "spec"}}[o.GetKind()]
		if at == nil {
			continue
		}
		content, _, err := unstructured.NestedMap(o.Object, at...)
		if err != nil {
			t.Fatal(err)
		}
		var pod corev1.PodSpec
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &pod); err != nil {
			t.Fatal(err)
		}
		pods[o.GetKind()+" "+o.GetName()] = pod
	}
	return pods
}

// All Pods that run Freshbind take the same image, wherever it comes from.
func TestWhereTheImageComesFrom(t *testing.T) {
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for name, tc := range map[string]struct {
		values []string
		want   string
	}{
		"by default":             {nil, "ghcr.io/freshbind/freshbind:0.1.0"},
		"a registry":             {[]string{"image.registry=r.example.com:5000", "image.tag=v2"}, "r.example.com:5000/freshbind/freshbind:v2"},
		"a registry for all":     {[]string{"global.imageRegistry=mirror/x", "image.registry=r.example.com"}, "mirror/x/freshbind/freshbind:0.1.0"},
		"a digest":               {[]string{"image.registry=r.example.com", "image.digest=" + digest, "image.tag=v2"}, "r.example.com/freshbind/freshbind@" + digest},
		"whatever the nodes say": {[]string{"image.registry="}, "freshbind/freshbind:0.1.0"},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[string]string{}
			for pod, spec := range podsOf(t, render(t, everything(tc.values...)...)) {
				got[pod] = spec.Containers[0].Image
			}
			want := map[string]string{"Deployment freshbind-scheduler": "scheduler:v1"}
			for _, pod := range []string{"Deployment freshbind", "Deployment freshbind-routes", "Deployment freshbind-sentinel", "Pod freshbind-test", "Job freshbind-release"} {
				want[pod] = tc.want
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("images (-want,+got):\n%s", diff)
			}
		})
	}
}

// OpenShift's restricted-v2 chooses the user and refuses any other, so nothing may
// depend on one; the restricted Pod Security Standard wants the rest.
func TestPodsNeedNoUserOfTheirOwn(t *testing.T) {
	for name, spec := range podsOf(t, render(t, everything("scheduling.podSecurityContext.runAsUser=null")...)) {
		pod, container := spec.SecurityContext, spec.Containers[0].SecurityContext
		switch {
		case pod == nil || pod.RunAsNonRoot == nil || !*pod.RunAsNonRoot || pod.SeccompProfile == nil:
			t.Errorf("%s may run as root, or without seccomp: %v", name, pod)
		case pod.RunAsUser != nil || pod.RunAsGroup != nil || pod.FSGroup != nil || container.RunAsUser != nil:
			t.Errorf("%s fixes a user or a group: %v", name, pod)
		case *container.AllowPrivilegeEscalation || !*container.ReadOnlyRootFilesystem || !slices.Equal(container.Capabilities.Drop, []corev1.Capability{"ALL"}):
			t.Errorf("%s has more than it needs: %v", name, container)
		}
		for _, v := range spec.Volumes {
			if v.Secret != nil && (v.Secret.DefaultMode == nil || *v.Secret.DefaultMode&0o004 == 0) {
				t.Errorf("%s: not every user can read volume %s", name, v.Name)
			}
		}
	}
}

func TestSecurityContextsAreValues(t *testing.T) {
	values := []string{"podSecurityContext.runAsUser=7", "scheduling.podSecurityContext.runAsUser=8", "securityContext.runAsGroup=9"}
	got := map[string][2]int64{}
	for name, spec := range podsOf(t, render(t, everything(values...)...)) {
		got[name] = [2]int64{*spec.SecurityContext.RunAsUser, *spec.Containers[0].SecurityContext.RunAsGroup}
	}
	want := map[string][2]int64{
		"Deployment freshbind": {7, 9}, "Deployment freshbind-routes": {7, 9}, "Deployment freshbind-sentinel": {7, 9},
		"Deployment freshbind-scheduler": {8, 9}, "Pod freshbind-test": {7, 9}, "Job freshbind-release": {7, 9},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("user and group (-want,+got):\n%s", diff)
	}
}

// GKE refuses Pods of system priority where no quota allows them.
func TestQuotaOfSystemPriorities(t *testing.T) {
	const gke = "--kube-version=v1.33.5-gke.1201000"
	for name, tc := range map[string]struct {
		args []string
		want bool
	}{
		"elsewhere":        {nil, false},
		"on GKE":           {[]string{gke}, true},
		"on GKE, unwanted": {append(set("priorityQuota.create=Never"), gke), false},
		"asked for":        {set("priorityQuota.create=Always"), true},
		"another class":    {append(set("priorityClassName=high"), gke), false},
		"no class":         {append(set("priorityClassName="), gke), false},
	} {
		t.Run(name, func(t *testing.T) {
			quota := find(render(t, append(tc.args, certManager)...), "ResourceQuota", "")
			if got := quota != nil; got != tc.want {
				t.Fatalf("there is a quota: %t, want %t", got, tc.want)
			}
			if quota == nil {
				return
			}
			want := map[string]any{
				"hard": map[string]any{"pods": "100"},
				"scopeSelector": map[string]any{"matchExpressions": []any{
					map[string]any{"scopeName": "PriorityClass", "operator": "In", "values": []any{"system-cluster-critical"}},
				}},
			}
			if diff := cmp.Diff(want, quota.Object["spec"]); diff != "" {
				t.Errorf("quota (-want,+got):\n%s", diff)
			}
		})
	}
}

// Who limits what Pods may call still lets them look up names, and reach the API
// servers and their gateways.
func TestEgress(t *testing.T) {
	for _, p := range render(t, everything()...) {
		if types, _, _ := unstructured.NestedStringSlice(p.Object, "spec", "policyTypes"); slices.Contains(types, "Egress") {
			t.Errorf("by default %s limits what is called", p.GetName())
		}
	}
	got := map[string]string{}
	for _, p := range render(t, everything("networkPolicy.egress.enabled=true", "networkPolicy.apiServerCIDRs={10.0.0.1/32}",
		"networkPolicy.egress.apiServerPorts={6443}", "networkPolicy.egress.rules[0].ports[0].port=4317")...) {
		if p.GetKind() != "NetworkPolicy" {
			continue
		}
		if types, _, _ := unstructured.NestedStringSlice(p.Object, "spec", "policyTypes"); !slices.Equal(types, []string{"Ingress", "Egress"}) {
			t.Errorf("%s is for %v", p.GetName(), types)
		}
		rules, _, _ := unstructured.NestedSlice(p.Object, "spec", "egress")
		got[p.GetName()] = strings.ReplaceAll(marshal(t, rules), "\n", " ")
	}
	const common = "- ports:   - port: 53     protocol: UDP   - port: 53     protocol: TCP " +
		"- ports:   - port: 6443     protocol: TCP   to:   - ipBlock:       cidr: 10.0.0.1/32 "
	want := map[string]string{
		"freshbind":          common + "- ports:   - port: 4317 ",
		"freshbind-routes":   common + "- ports:   - port: 4317 ",
		"freshbind-sentinel": common + "- ports:   - port: 7789     protocol: TCP - ports:   - port: 4317 ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("egress (-want,+got):\n%s", diff)
	}
}

// What the program reads of its environment, beside the configuration file.
func TestEnvironment(t *testing.T) {
	for name, tc := range map[string]struct {
		values []string
		want   []corev1.EnvVar
	}{
		"by default": {nil, []corev1.EnvVar{{Name: "GOMEMLIMIT", Value: "460MiB"}}},
		"no limit":   {[]string{"resources.limits=null"}, nil},
		"traces": {
			[]string{"tracing.endpoint=http://collector:4317", "resources.limits=null"},
			[]corev1.EnvVar{
				{Name: "OTEL_EXPORTER_OTLP_ENDPOINT", Value: "http://collector:4317"},
				{Name: "OTEL_TRACES_SAMPLER", Value: "parentbased_traceidratio"}, {Name: "OTEL_TRACES_SAMPLER_ARG", Value: "0.01"},
			},
		},
		"all traces, and more": {
			[]string{"tracing.endpoint=https://c:1", "tracing.samplingRatePerMillion=1000000", "extraEnv[0].name=OTEL_EXPORTER_OTLP_HEADERS", "extraEnv[0].value=a=b"},
			[]corev1.EnvVar{
				{Name: "GOMEMLIMIT", Value: "460MiB"}, {Name: "OTEL_EXPORTER_OTLP_ENDPOINT", Value: "https://c:1"},
				{Name: "OTEL_TRACES_SAMPLER", Value: "parentbased_traceidratio"}, {Name: "OTEL_TRACES_SAMPLER_ARG", Value: "1"},
				{Name: "OTEL_EXPORTER_OTLP_HEADERS", Value: "a=b"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := podsOf(t, render(t, append(set(tc.values...), certManager)...))["Deployment freshbind"].Containers[0].Env
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("environment (-want,+got):\n%s", diff)
			}
		})
	}
}
