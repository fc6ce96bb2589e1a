package cli_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/cli"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/test/clitest"
)

func historyOf(t *testing.T, c *cli.Cluster, template *unstructured.Unstructured) []cli.Revision {
	t.Helper()
	store, err := c.Load(t.Context(), ns)
	if err != nil {
		t.Fatal(err)
	}
	history, err := c.Revisions(t.Context(), store, template)
	if err != nil {
		t.Fatal(err)
	}
	return history
}

func TestTarget(t *testing.T) {
	v1, v2, v3 := version("v1"), version("v2"), version("v3")
	broken := clitest.Revision(t, v2, 2, clitest.Now)
	broken.Data.Raw = []byte(`{"spec":{}}`)
	revision := func(tmpl *unstructured.Unstructured, n int64) *appsv1.ControllerRevision {
		return clitest.Revision(t, tmpl, n, clitest.Now)
	}
	cases := map[string]struct {
		recorded []client.Object
		number   int64
		want     int64
		err      string
	}{
		"the one before":          {recorded: []client.Object{revision(v1, 1), revision(v2, 2), revision(v3, 3)}, want: 2},
		"after an undo":           {recorded: []client.Object{revision(v1, 4), revision(v2, 2), revision(v3, 5)}, want: 4},
		"in force is not newest":  {recorded: []client.Object{revision(v3, 1), revision(v2, 2)}, want: 2},
		"by number":               {recorded: []client.Object{revision(v1, 1), revision(v2, 2), revision(v3, 3)}, number: 1, want: 1},
		"the one in force":        {recorded: []client.Object{revision(v1, 1), revision(v3, 3)}, number: 3, want: 3},
		"no such number":          {recorded: []client.Object{revision(v3, 3)}, number: 9, err: "no revision 9 is recorded: rollout history lists them"},
		"nothing earlier":         {recorded: []client.Object{revision(v3, 3)}, err: "no earlier revision is recorded, so there is nothing to go back to"},
		"nothing at all":          {err: "no earlier revision is recorded, so there is nothing to go back to"},
		"only digests":            {recorded: []client.Object{clitest.Digests(t, v2, 2, clitest.Now), revision(v3, 3)}, err: "revision 2 (" + cli.Short(clitest.Hash(t, v2)) + "): only digests of its values were kept (mode audit, or manager --revision-digests), so it cannot be restored: apply the template from its source"},
		"what cannot be read":     {recorded: []client.Object{broken, revision(v3, 3)}, err: "revision 2 (" + cli.Short(clitest.Hash(t, v2)) + ") cannot be read (controllerrevision " + broken.Name + ")"},
		"of another template too": {recorded: []client.Object{revision(version("v9"), 9)}, number: 8, err: "no revision 8 is recorded: rollout history lists them"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, append(tc.recorded, v3, namespace(""))...)
			got, err := cli.Target(historyOf(t, c, v3), tc.number)
			if (err == nil) != (tc.err == "") || err != nil && err.Error() != tc.err {
				t.Fatalf("error = %v, want %q", err, tc.err)
			}
			if got.Number != tc.want {
				t.Errorf("revision %d, want %d", got.Number, tc.want)
			}
		})
	}
}

func TestUndo(t *testing.T) {
	v1, v2 := version("v1"), version("v2")
	for dry, want := range map[cli.DryRun]string{cli.Real: "v1", cli.ClientSide: "v2", cli.ServerSide: "v2"} {
		t.Run(string(dry), func(t *testing.T) {
			c := newCluster(t, v2, namespace(""), clitest.Revision(t, v1, 1, clitest.Now), clitest.Revision(t, v2, 2, clitest.Now))
			live, err := c.Get(t.Context(), agentsandbox.Templates, ns, "python")
			if err != nil {
				t.Fatal(err)
			}
			to, err := cli.Target(historyOf(t, c, live), 0)
			if err != nil {
				t.Fatal(err)
			}
			change, err := c.Undo(t.Context(), live, to, dry)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(change, `.image: "v2" -> "v1"`) {
				t.Errorf("change %q", change)
			}
			stored, err := c.Get(t.Context(), agentsandbox.Templates, ns, "python")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(version(want).Object["spec"], stored.Object["spec"]); diff != "" {
				t.Errorf("stored spec (-want,+got):\n%s", diff)
			}
		})
	}
}

// Somebody else's write in between is not overwritten.
func TestUndoOfATemplateThatChanged(t *testing.T) {
	v1, v2 := version("v1"), version("v2")
	c := newCluster(t, v2, namespace(""), clitest.Revision(t, v1, 1, clitest.Now))
	live, err := c.Get(t.Context(), agentsandbox.Templates, ns, "python")
	if err != nil {
		t.Fatal(err)
	}
	to, err := cli.Target(historyOf(t, c, live), 0)
	if err != nil {
		t.Fatal(err)
	}
	newer := live.DeepCopy()
	newer.SetLabels(map[string]string{"a": "b"})
	if err := c.Client.Update(t.Context(), newer); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Undo(t.Context(), live, to, cli.Real); !apierrors.IsConflict(err) {
		t.Errorf("error = %v, want a conflict", err)
	}
}

func TestErrDigestsCanBeTold(t *testing.T) {
	v1, v2 := version("v1"), version("v2")
	c := newCluster(t, v2, namespace(""), clitest.Digests(t, v1, 1, clitest.Now))
	if _, err := cli.Target(historyOf(t, c, v2), 1); !errors.Is(err, cli.ErrDigests) {
		t.Errorf("error = %v", err)
	}
}

// A member of this very second is older than the restart, and one that is
// created after it is not.
func TestRestartTime(t *testing.T) {
	cases := map[string]struct{ now, created, want time.Time }{
		"the same second":        {clitest.Now.Add(900 * time.Millisecond), clitest.Now, clitest.Now},
		"an older member":        {clitest.Now, clitest.Now.Add(-time.Hour), clitest.Now},
		"a clock that is behind": {clitest.Now.Add(-time.Minute), clitest.Now, clitest.Now},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.Now = func() time.Time { return tc.now }
			got := c.RestartTime(&cli.Pool{Members: []cli.Member{{Created: metav1.NewTime(tc.created)}}})
			if !got.Equal(tc.want) {
				t.Errorf("restarted at %s, want %s", got, tc.want)
			}
		})
	}
}

func TestRestartMakesEveryMemberStale(t *testing.T) {
	v1 := version("v1")
	p := pool(2)
	born := one(p, v1, "python-now").Ready(true).Created(clitest.Now).Obj()
	c := newCluster(t, append(idle(p, v1, "a", 1), v1, p.Obj(), namespace("enforce"), born)...)
	before := judge(t, c)[0]
	if err := c.Restart(t.Context(), &before, cli.ClientSide); err != nil {
		t.Fatal(err)
	}
	if p := judge(t, c)[0]; p.Stale != 0 {
		t.Errorf("a dry run made %d members stale", p.Stale)
	}
	if err := c.Restart(t.Context(), &before, cli.Real); err != nil {
		t.Fatal(err)
	}
	if p := judge(t, c)[0]; p.Stale != 2 || p.Updated != 0 {
		t.Errorf("%d members stale, %d up to date", p.Stale, p.Updated)
	}
	after := one(p, v1, "python-after").Ready(true).Created(clitest.Now.Add(time.Second)).Obj()
	if err := c.Client.Create(t.Context(), after); err != nil {
		t.Fatal(err)
	}
	if p := judge(t, c)[0]; p.Updated != 1 {
		t.Errorf("%d members up to date after one was born", p.Updated)
	}
}

func TestKeeper(t *testing.T) {
	cases := map[string]struct {
		labels, annotations map[string]string
		want                string
	}{
		"nobody":           {labels: map[string]string{"app.kubernetes.io/instance": "x"}},
		"argo, annotation": {annotations: map[string]string{"argocd.argoproj.io/tracking-id": "app:x"}, want: "Warning: template python is managed by Argo CD (annotation argocd.argoproj.io/tracking-id: app:x), which will revert this: change it at its source, or suspend the sync first."},
		"argo, label":      {labels: map[string]string{"argocd.argoproj.io/instance": "app"}, want: "Warning: template python is managed by Argo CD (argocd.argoproj.io/instance: app), which will revert this: change it at its source, or suspend the sync first."},
		"flux":             {labels: map[string]string{"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}, want: "Warning: template python is managed by Flux (Kustomization flux-system/apps), which will revert this: change it at its source, or suspend the sync first."},
		"flux, helm":       {labels: map[string]string{"helm.toolkit.fluxcd.io/name": "apps", "helm.toolkit.fluxcd.io/namespace": "prod"}, want: "Warning: template python is managed by Flux (HelmRelease prod/apps), which will revert this: change it at its source, or suspend the sync first."},
		"flux, told to leave it alone": {
			labels:      map[string]string{"kustomize.toolkit.fluxcd.io/name": "apps"},
			annotations: map[string]string{"kustomize.toolkit.fluxcd.io/reconcile": "disabled"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			obj := &unstructured.Unstructured{Object: map[string]any{}}
			obj.SetLabels(tc.labels)
			obj.SetAnnotations(tc.annotations)
			if diff := cmp.Diff(tc.want, cli.KeptWarning("template python", obj)); diff != "" {
				t.Errorf("warning (-want,+got):\n%s", diff)
			}
		})
	}
}
