package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

func marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

func unstructuredString(u *unstructured.Unstructured, path ...string) (string, bool, error) {
	return unstructured.NestedString(u.Object, path...)
}

func hashOf(t *testing.T, template *unstructured.Unstructured) string {
	t.Helper()
	b, err := agentsandbox.RenderMember(template)
	if err != nil {
		t.Fatal(err)
	}
	return b.Hash()
}

const (
	stampKey   = settings.StampKey
	mergePatch = types.MergePatchType
)

var (
	patchOptions  metav1.PatchOptions
	updateOptions metav1.UpdateOptions
	createOptions metav1.CreateOptions
	getOptions    metav1.GetOptions
)

func stampPatch(hash string) []byte {
	return marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{stampKey: hash}}})
}

func (s *stage) kube() kubernetes.Interface {
	s.t.Helper()
	kube, err := kubernetes.NewForConfig(s.w.Cluster.Config())
	s.must(err)
	return kube
}

// withoutStampPolicy removes the policy that keeps stamps as they are, until
// the returned function is called.
func (w *world) withoutStampPolicy(t *testing.T) (restore func()) {
	t.Helper()
	kube, err := kubernetes.NewForConfig(w.Cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	bindings := kube.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	binding, err := bindings.Get(t.Context(), "freshbind-stamp", getOptions)
	if err != nil {
		t.Fatal(err)
	}
	if err := bindings.Delete(t.Context(), binding.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	return func() {
		binding.ResourceVersion, binding.UID = "", ""
		if _, err := bindings.Create(context.WithoutCancel(t.Context()), binding, createOptions); err != nil {
			t.Error(err)
		}
	}
}

func isNotFound(err error) bool { return apierrors.IsNotFound(err) }

func isInvalid(err error) bool { return apierrors.IsInvalid(err) }

func (s *stage) list(r schema.GroupResource) []unstructured.Unstructured {
	s.t.Helper()
	list, err := s.Resource(r).List(s.t.Context(), metav1.ListOptions{})
	s.must(err)
	return list.Items
}

// atRest waits until the pool is full and nobody has written to its members for
// a while: what refusals set in motion, offering members again, has ended.
func (s *stage) atRest(p scenario.Pool) {
	s.t.Helper()
	last, still := "", 0
	s.eventually("members at rest", func(context.Context) (string, bool) {
		var now strings.Builder
		for _, m := range s.full(p, "") {
			fmt.Fprintln(&now, m.Name, s.get(upstream.Sandboxes, m.Name).GetResourceVersion())
		}
		if now.String() == last {
			still++
		} else {
			last, still = now.String(), 0
		}
		return last, still >= 20
	})
}
