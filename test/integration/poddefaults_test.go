package integration

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/fakekruise"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

// A Pod has all that the API server writes where its template says nothing. Neither the
// guard nor the auditor may take that for another revision, or nobody is served.
func TestWhatTheAPIServerAddsIsNoDifference(t *testing.T) {
	for _, version := range upstream.Releases() {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			additionsAreNoDifference(t, releaseWorld(t, version))
		})
	}
}

func additionsAreNoDifference(t *testing.T, w *world) {
	s := w.enforced(t)
	p := s.pool(scenario.Pool{Replicas: 3, Strategy: scenario.Recreate}, func(b *builders.Template) {
		b.PodSpec(builders.DefaultedPodSpec("sandbox:v1")).Set("python", "spec", "podTemplate", "metadata", "labels", builders.DefaultedLabel).
			// One of these has the name of a volume, which the Pod then has not.
			VolumeClaim("data", "1Gi").VolumeClaim("empty", "1Gi").Service(true)
	})
	for _, image := range []string{"sandbox:v1", "sandbox:v2"} {
		s.image(p, image)
		want := hashOf(t, s.get(upstream.SandboxTemplates, p.Template))
		for _, m := range s.full(p, image) {
			s.stamped(m.Name, want)
		}
	}
	claims := scenario.Names("c", 3)
	s.claim(p, claims...)
	if sum := s.fresh(len(claims)); sum.Warm != len(claims) {
		t.Errorf("%d of %d claims got a member, and none is of another revision", sum.Warm, len(claims))
	}
}

// The same of OpenKruise Agents, whose kinds have no defaults of their own.
func TestWhatTheAPIServerAddsToKruisesPods(t *testing.T) {
	t.Parallel()
	w := startKruise(t)
	w.askedOnce()
	record, err := scenario.Record(t.Context(), w.cluster.Config())
	w.must(err)
	spec := builders.DefaultedPodSpec(boxBefore)
	// agent-sandbox's kinds refuse this.
	spec.Containers[0].Env = append(spec.Containers[0].Env, corev1.EnvVar{Name: "TWICE", Value: "1"}, corev1.EnvVar{Name: "TWICE", Value: "2"})
	plain, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&spec)
	w.must(err)
	// As in examples of upstream's: its Go types read a number, and know no field that begins like this. Its webhook, which
	// removes such fields, may be off, and is not asked about edits of a SandboxTemplate.
	container := plain["containers"].([]any)[0].(map[string]any)
	container["ImagePullPolicy"] = "IfNotPresent"
	container["resources"] = map[string]any{"limits": map[string]any{"cpu": int64(1), "memory": "64Mi"}}
	template := map[string]any{"metadata": map[string]any{"labels": map[string]any{builders.DefaultedLabel: "box"}}, "spec": plain}

	w.create(kruiseObject("SandboxTemplate", kruiseSpace, "referred", map[string]any{"template": template}))
	sets := map[string]map[string]any{
		"inline":   {"replicas": int64(boxes), "template": template},
		"referred": {"replicas": int64(boxes), "templateRef": map[string]any{"name": "referred"}},
	}
	server := w.doubleOf(0, fakekruise.Options{WithoutRolling: true})
	for name, spec := range sets {
		set := kruiseObject("SandboxSet", kruiseSpace, name, spec)
		w.create(set)
		w.eventually("the SandboxSet "+name+" to be full", func() error { return w.stocked(set) })
		const counts = " -o jsonpath={.updatedReplicas},{.staleReplicas},{.unknownReplicas},{.unusableReplicas},{.revision}"
		w.prints("status "+name+" -n "+kruiseSpace+counts, "3,0,0,0,1")
		edited := set
		if name == "referred" {
			edited = kruiseObject("SandboxTemplate", kruiseSpace, "referred", nil)
		}
		w.changed(edited, func(u *unstructured.Unstructured) {
			w.must(unstructured.SetNestedField(u.Object, "box", "spec", "template", "spec", "hostnam"))
		})
		w.prints("status "+name+" -n "+kruiseSpace+counts, "3,0,0,0,1")
		w.served(server, fakekruise.Request{Namespace: kruiseSpace, Set: name, User: "user-of-" + name, OnlyStock: true})
	}
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	report, err := record.Judge(ctx)
	w.must(err)
	sum, findings := scenario.About(report, kruiseSpace)
	if sum.Warm != len(sets) || sum.Classes[checker.Fresh] != len(sets) {
		t.Errorf("the auditor found %+v, %v, want %d fresh binds", sum, findings, len(sets))
	}
}
