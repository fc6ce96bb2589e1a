package poddefaults

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install" // into legacyscheme
	podregistry "k8s.io/kubernetes/pkg/registry/core/pod"
	"sigs.k8s.io/randfill"

	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/revision"
)

// dropped are fields that this API server takes out of Pods, because their features are off.
var dropped = regexp.MustCompile(`\.(schedulingGroup|evictionResponders|emptyDir\.mode|defaultUser|user|stopSignal|bindMountOptions|httpGet\.protocol|grpc\.mode)\b`)

// ambiguous is a limit of huge pages that follows from the Pod's own request: it is the request that follows from limits.
var ambiguous = regexp.MustCompile(`^podTemplate\.spec\.resources\.limits\.hugepages`)

// Whatever the API server's own code adds to a Pod, converts or derives is no difference.
func TestPodsOfAnyTemplate(t *testing.T) {
	const templates = 3000
	random := randomPods(1)
	seen := map[string]bool{}
	for range templates {
		template := corev1.PodSpec{}
		random.Fill(&template)
		apart := 0
		nameApart(reflect.ValueOf(&template).Elem(), &apart)
		// What only a Pod has.
		template.NodeName, template.EphemeralContainers, template.Overhead = "", nil, nil
		for _, d := range differences(t, template) {
			if d.Got == "" && dropped.MatchString(d.Path) || ambiguous.MatchString(d.Path) || seen[shape(d)] {
				continue
			}
			seen[shape(d)] = true
			t.Errorf("the API server makes %s: %q of %q; allow for that in internal/platform or revision.Blueprint.PodOnly", d.Path, d.Got, d.Want)
		}
	}
}

// The test compares with what the API server makes, and not the template with itself.
func TestTheAPIServerAddsSomething(t *testing.T) {
	plain := tree(t, &corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}})
	stored, _, _ := unstructured.NestedMap(admittedPod(t, plain).Object, "spec")
	if reflect.DeepEqual(plain, stored) {
		t.Error("the Pod as it is stored is its template")
	}
}

func differences(t *testing.T, template corev1.PodSpec) []revision.Difference {
	t.Helper()
	spec := tree(t, &template)
	asked, err := revision.FromSpec(map[string]any{"podTemplate": map[string]any{"spec": spec}})
	if err != nil {
		t.Fatalf("read a template: %v", err)
	}
	pod := admittedPod(t, spec)
	runs, err := platform.ReadPod(pod)
	if err != nil {
		t.Fatalf("read its Pod: %v", err)
	}
	allowed, err := platform.PodInjections(pod, revision.PathSet{})
	if err != nil {
		t.Fatal(err)
	}
	return revision.Compare(asked.PodOnly(), runs.Content, allowed)
}

// admittedPod is what the API server stores: decoded with its defaults, and prepared as its registry does.
func admittedPod(t *testing.T, spec map[string]any) *unstructured.Unstructured {
	t.Helper()
	raw, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Pod", "spec": spec,
		"metadata": map[string]any{"name": "p", "namespace": "ns", "labels": map[string]any{"a": "b"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := runtime.Decode(legacyscheme.Codecs.UniversalDecoder(core.SchemeGroupVersion), raw)
	if err != nil {
		t.Fatalf("decode a Pod: %v", err)
	}
	podregistry.Strategy.PrepareForCreate(request.WithNamespace(t.Context(), "ns"), decoded)
	stored := &corev1.Pod{}
	if err := legacyscheme.Scheme.Convert(decoded, stored, nil); err != nil {
		t.Fatalf("convert a Pod: %v", err)
	}
	return &unstructured.Unstructured{Object: tree(t, stored)}
}

func tree(t *testing.T, of any) map[string]any {
	t.Helper()
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(of)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var inBrackets = regexp.MustCompile(`\[[^\]]*\]`)

func shape(d revision.Difference) string {
	return fmt.Sprint(inBrackets.ReplaceAllString(d.Path, "[]"), d.Want == "", d.Got == "")
}

// randomPods leave most fields out, so that the API server fills them in.
func randomPods(seed int64) *randfill.Filler {
	return randfill.NewWithSeed(seed).NilChance(0.7).NumElements(0, 2).MaxDepth(14).Funcs(slices.Concat(
		values("", "a", "b"), values(false, true), values[int32](0, 1, 2), values[int64](0, 1, 2),
		values(intstr.FromInt32(1), intstr.FromString("a")), values(resource.MustParse("1"), resource.MustParse("2")),
		values(map[string]string(nil), map[string]string{"a": "b"}),
		[]any{
			func(l *corev1.ResourceList, r randfill.Continue) {
				*l = nil
				for _, name := range []corev1.ResourceName{"cpu", "memory", "hugepages-2Mi", "example.com/gpu"} {
					if r.Intn(3) == 0 {
						if *l == nil {
							*l = corev1.ResourceList{}
						}
						(*l)[name] = resource.MustParse([]string{"1", "2"}[r.Intn(2)])
					}
				}
			},
			func(*metav1.ObjectMeta, randfill.Continue) {},
			func(*metav1.Time, randfill.Continue) {},
		},
	)...)
}

// values are a field's. Without the second function, no pointer to them would ever be nil.
func values[T any](of ...T) []any {
	fill := func(v *T, r randfill.Continue) { *v = of[r.Intn(len(of))] }
	return []any{fill, func(v **T, r randfill.Continue) {
		if *v = nil; r.Intn(3) == 0 {
			*v = new(T)
			fill(*v, r)
		}
	}}
}

// nameApart gives the elements of lists what tells them apart, as the API server asks for.
func nameApart(v reflect.Value, n *int) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			nameApart(v.Elem(), n)
		}
	case reflect.Slice:
		for i := range v.Len() {
			element := v.Index(i)
			nameApart(element, n)
			if element.Kind() != reflect.Struct {
				continue
			}
			*n++
			for _, key := range []string{"Name", "MountPath", "DevicePath", "TopologyKey", "IP", "UID"} {
				if field := element.FieldByName(key); field.IsValid() && field.Kind() == reflect.String {
					field.SetString(fmt.Sprintf("n%d", *n))
				}
			}
			if port := element.FieldByName("ContainerPort"); port.IsValid() {
				port.SetInt(int64(*n))
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				nameApart(v.Field(i), n)
			}
		}
	}
}
