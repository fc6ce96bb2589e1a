package checker

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/freshbind/freshbind/test/builders"
)

// What the API server writes into a Pod is no difference, unless it is another one's.
func TestWhatAdmissionWroteIsNoDifference(t *testing.T) {
	base := func() *builders.Template { return builders.MakeTemplate(ns, "python") }
	with := func(key string, value any) *builders.Template {
		return base().PodSpec([]any{map[string]any{"name": "c", "image": "sandbox:v1", key: value}}, "containers")
	}
	pulled := func(policy string) *builders.Template { return with("imagePullPolicy", policy) }
	volume := func(policy string) []any {
		return []any{map[string]any{"name": "v", "image": map[string]any{"reference": "data:v1", "pullPolicy": policy}}}
	}
	context := func(context map[string]any) func(p *builders.Pod) {
		return func(p *builders.Pod) {
			p.Set([]any{map[string]any{"name": "c", "image": "sandbox:v1", "securityContext": context}}, "spec", "containers")
		}
	}
	profile := func(kind string) map[string]any {
		return map[string]any{"appArmorProfile": map[string]any{"type": kind}}
	}
	named := func(container, annotation string, then func(p *builders.Pod)) func(p *builders.Pod) {
		return func(p *builders.Pod) {
			p.Annotation(corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix+container, annotation)
			then(p)
		}
	}
	const noProfile = "containers[0].securityContext.appArmorProfile is in the Pod and not in the template"
	const noContext = "containers[0].securityContext is in the Pod and not in the template"
	for name, tc := range map[string]struct {
		runs, asked *builders.Template
		pod         func(p *builders.Pod)
		want        string
	}{
		"the deprecated name of a service account": {
			runs: base().PodSpec("builder", "serviceAccount"), asked: base().PodSpec("builder", "serviceAccount"),
			pod: func(p *builders.Pod) { p.Set("builder", "spec", "serviceAccountName") }},
		"a deprecated name that does not count": {
			runs:  base().PodSpec("builder", "serviceAccountName").PodSpec("builder", "serviceAccount"),
			asked: base().PodSpec("builder", "serviceAccountName").PodSpec("other", "serviceAccount")},
		"another service account": {runs: base().PodSpec("builder", "serviceAccountName"), asked: base().PodSpec("other", "serviceAccount"),
			want: "serviceAccountName builder -> other"},
		"a service account that was removed": {runs: base().PodSpec("builder", "serviceAccountName"), asked: base(),
			want: "serviceAccountName is in the Pod and not in the template"},
		"a restart policy that was removed": {runs: base().PodSpec("Never", "restartPolicy"), asked: base(),
			want: "restartPolicy is in the Pod and not in the template"},
		"a time to end that was removed": {runs: base().PodSpec(int64(5), "terminationGracePeriodSeconds"), asked: base(),
			want: "terminationGracePeriodSeconds is in the Pod and not in the template"},
		"a time to end like the default": {runs: base(), asked: base().PodSpec(int64(30), "terminationGracePeriodSeconds")},
		"images that are always pulled":  {runs: pulled("Always"), asked: pulled("IfNotPresent")},
		"images that are pulled once": {runs: pulled("IfNotPresent"), asked: pulled("Always"),
			want: "containers[0].imagePullPolicy IfNotPresent -> Always"},
		"a volume's image that is always pulled": {runs: base().PodSpec(volume("Always"), "volumes"), asked: base().PodSpec(volume("Never"), "volumes")},
		"a volume's image that is pulled once": {runs: base().PodSpec(volume("Never"), "volumes"), asked: base().PodSpec(volume("Always"), "volumes"),
			want: "volumes[0].image.pullPolicy differs (value not shown)"},
		"AppArmor of the runtime": {runs: base(), asked: base(), pod: named("c", "runtime/default", context(profile("RuntimeDefault")))},
		"no AppArmor":             {runs: base(), asked: base(), pod: named("c", "unconfined", context(profile("Unconfined")))},
		"AppArmor of the node": {runs: base(), asked: base(), pod: named("c", "localhost/a", context(map[string]any{
			"appArmorProfile": map[string]any{"type": "Localhost", "localhostProfile": "a"}}))},
		"another AppArmor of the node": {runs: base(), asked: base(), pod: named("c", "localhost/b", context(map[string]any{
			"appArmorProfile": map[string]any{"type": "Localhost", "localhostProfile": "a"}})), want: noContext},
		"AppArmor of another container": {runs: base(), asked: base(), pod: named("d", "unconfined", context(profile("Unconfined"))), want: noContext},
		"AppArmor of nobody":            {runs: base(), asked: base(), pod: context(profile("Unconfined")), want: noContext},
		"AppArmor beside the rest": {runs: base(), asked: with("securityContext", map[string]any{"runAsUser": int64(1)}), pod: named("c", "unconfined",
			context(map[string]any{"runAsUser": int64(1), "appArmorProfile": map[string]any{"type": "Unconfined"}}))},
		"AppArmor of nobody beside the rest": {runs: base(), asked: with("securityContext", map[string]any{"runAsUser": int64(1)}),
			pod: context(map[string]any{"runAsUser": int64(1), "appArmorProfile": map[string]any{"type": "Unconfined"}}), want: noProfile},
		"AppArmor that was asked for": {runs: base(), asked: with("securityContext", profile("Unconfined")),
			pod: named("c", "unconfined", context(profile("Unconfined")))},
	} {
		t.Run(name, func(t *testing.T) {
			got := differenceOf(t, tc.runs, tc.asked, tc.pod)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("difference (-want,+got):\n%s", diff)
			}
		})
	}
}

// What is kept of every Pod is no more than the names that matter.
func TestProfilesThatAnnotationsName(t *testing.T) {
	unconfined := map[string]any{"appArmorProfile": map[string]any{"type": "Unconfined"}}
	container := func(name string, context map[string]any) any {
		return map[string]any{"name": name, "securityContext": context}
	}
	pod := builders.MakePod(builders.MakeMember(builders.MakePool(ns, "python").Obj(), builders.MakeTemplate(ns, "python").Obj()).Obj()).
		Set([]any{container("i", unconfined)}, "spec", "initContainers").
		Set([]any{container("c", unconfined), container("d", unconfined), container("e", map[string]any{}), container("f", map[string]any{})}, "spec", "containers")
	for _, name := range []string{"i", "c", "e"} {
		pod.Annotation(corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix+name, "unconfined")
	}
	if got, want := profiledByAnnotation(pod.Obj()), "i,c"; got != want {
		t.Errorf("annotations name the profiles of %q, want %q", got, want)
	}
}
