package agentsandbox

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/test/builders"
)

// listing lists these objects; not those of the failing kind.
func listing(failing string, objs ...*unstructured.Unstructured) client.Reader {
	scheme := runtime.NewScheme()
	for _, gvk := range []schema.GroupVersionKind{
		{Group: CoreGroup, Version: "v1beta1", Kind: kindSandbox}, {Group: ExtensionsGroup, Version: "v1beta1", Kind: kindClaim},
	} {
		scheme.AddKnownTypeWithName(gvk, &unstructured.Unstructured{})
		scheme.AddKnownTypeWithName(gvk.GroupVersion().WithKind(gvk.Kind+"List"), &unstructured.UnstructuredList{})
	}
	b := fake.NewClientBuilder().WithScheme(scheme)
	for _, o := range objs {
		o = o.DeepCopy()
		o.SetAPIVersion(o.GroupVersionKind().Group + "/v1beta1")
		if o.GetDeletionTimestamp() != nil {
			o.SetFinalizers([]string{"test.freshbind.dev/hold"})
		}
		b = b.WithObjects(o)
	}
	return b.WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if list.GetObjectKind().GroupVersionKind().Kind == failing+"List" {
				return errors.New("etcd is away")
			}
			return c.List(ctx, list, opts...)
		},
	}).Build()
}

func TestPodDeletion(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	earlier := now.Add(-time.Hour).Format(time.RFC3339)
	alpha := func() *builders.Claim { return builders.MakeClaimV1Alpha1("ns", "c1", "python", "") }
	claim := alpha().Obj()
	sandbox := func() *builders.Sandbox { return builders.MakeColdStart(claim, testTemplate).PodName("python-abc") }
	ended := func(c *builders.Claim) *builders.Claim { return c.Set(earlier, "spec", "lifecycle", "shutdownTime") }
	marked := released(barePod(testTemplate), claim)
	unmarked := released(barePod(testTemplate), nil)
	owned := builders.PodFrom(marked).Owners(builders.ControllerRef(sandbox().Obj())).Obj()
	poolsOwn := builders.ControllerRef(sandbox().Obj())
	poolsOwn.APIVersion, poolsOwn.Kind = ExtensionsGroup+"/v1alpha1", kindPool
	elsewhere := builders.MakeColdStart(claim, testTemplate).Obj()
	other := builders.MakeClaimV1Alpha1("ns", "c2", "python", "").Obj()
	others := builders.MakeColdStart(other, testTemplate).Obj()
	type objs = []*unstructured.Unstructured

	cases := map[string]struct {
		pod     *unstructured.Unstructured
		stored  objs
		allowed bool
	}{
		"its sandbox is in use":                 {owned, objs{sandbox().Obj(), claim}, false},
		"its sandbox is gone":                   {owned, objs{claim}, true},
		"its sandbox is another one":            {owned, objs{sandbox().UID("another").Obj(), claim}, true},
		"its sandbox is being deleted":          {owned, objs{sandbox().Deleting(now).Obj(), claim}, true},
		"its sandbox is scaled to zero":         {owned, objs{sandbox().Set(int64(0), "spec", "replicas").Obj(), claim}, true},
		"its sandbox is scaled to one":          {owned, objs{sandbox().Set(int64(1), "spec", "replicas").Obj(), claim}, false},
		"its sandbox has as many as by default": {owned, objs{builders.SandboxFrom(sandbox().Obj()).Unset("spec", "replicas").Obj(), claim}, false},
		"promised, another claim waits, too":    {marked, objs{claim, other}, false},
		"promised, another claim has one":       {marked, objs{claim, other, others}, false},
		"its sandbox is suspended":              {owned, objs{sandbox().Set("Suspended", "spec", "operatingMode").Obj(), claim}, true},
		"its sandbox is past its time":          {owned, objs{sandbox().Set(earlier, "spec", "shutdownTime").Obj(), claim}, true},
		"its claim is gone":                     {owned, objs{sandbox().Obj()}, true},
		"its claim is being deleted":            {owned, objs{sandbox().Obj(), alpha().Deleting(now).Obj()}, true},
		"its claim's time is up":                {owned, objs{sandbox().Obj(), ended(alpha()).Obj()}, true},
		"it is being deleted already":           {builders.PodFrom(owned).Deleting(now).Obj(), objs{sandbox().Obj(), claim}, true},
		"a pool's of its sandbox's name":        {builders.PodFrom(owned).Owners(poolsOwn).Obj(), objs{sandbox().Obj(), claim}, true},
		"promised, both claims have another":    {marked, objs{elsewhere, others, claim, other}, true},
		"promised, only another claim waits":    {marked, objs{elsewhere, claim, other}, true},
		"it is an idle member":                  {barePod(testTemplate), objs{sandbox().Obj(), claim}, true},
		"nobody's yet, a sandbox names it":      {unmarked, objs{sandbox().Obj(), claim}, false},
		"nobody's yet, that sandbox is going":   {unmarked, objs{sandbox().Deleting(now).Obj(), claim}, true},
		"nobody's, its claim has another":       {unmarked, objs{elsewhere, claim}, true},
		"nobody's yet, a claim waits":           {unmarked, objs{claim}, false},
		"nobody's yet, one of two claims waits": {unmarked, objs{elsewhere, claim, other}, false},
		"nobody's, the claim is going":          {unmarked, objs{alpha().Deleting(now).Obj()}, true},
		"nobody's, the claim's time is up":      {unmarked, objs{ended(alpha()).Obj()}, true},
		"nobody's yet, the next claim waits":    {unmarked, objs{ended(alpha()).Obj(), other}, false},
		"nobody's, and there is no claim":       {unmarked, nil, true},
		"promised":                              {marked, objs{claim}, false},
		"promised, a sandbox names it":          {marked, objs{sandbox().Obj(), claim}, false},
		"promised, the claim has another":       {marked, objs{elsewhere, claim}, true},
		"promised, the claim is gone":           {marked, nil, true},
		"promised, the claim is replaced":       {marked, objs{alpha().UID("another").Obj()}, true},
		"promised, the claim is going":          {marked, objs{alpha().Deleting(now).Obj()}, true},
		"promised, the claim's time is up":      {marked, objs{ended(alpha()).Obj()}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := &PodDeletions{Platform: newPlatform(newStore(tc.stored...), nil), API: listing("", tc.stored...)}
			got, err := d.Deletion(t.Context(), tc.pod, now)
			if err != nil {
				t.Fatal(err)
			}
			if v := freshness.JudgeDelete(got); v.Allowed != tc.allowed {
				t.Errorf("allowed is %t (%s), want %t", v.Allowed, v.Detail, tc.allowed)
			}
		})
	}

	unreadable := map[string]struct {
		pod    *unstructured.Unstructured
		unread string
		list   string
	}{
		"its sandbox":   {owned, "sandbox/c1", ""},
		"its claim":     {owned, "sandboxclaim/c1", ""},
		"all sandboxes": {marked, "", kindSandbox},
		"all claims":    {marked, "", kindClaim},
		"who waits":     {unmarked, "", kindClaim},
	}
	for name, tc := range unreadable {
		t.Run("unreadable: "+name, func(t *testing.T) {
			s := newStore(sandbox().Obj(), claim)
			s.fail[tc.unread] = errors.New("etcd is away")
			d := &PodDeletions{Platform: newPlatform(s, nil), API: listing(tc.list, claim)}
			if got, err := d.Deletion(t.Context(), tc.pod, now); err == nil {
				t.Errorf("what cannot be read counts as gone: %+v", got)
			}
		})
	}
}
