package scenario

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/freshbind/freshbind/internal/auditlog"
	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/test/controlplane"
	"github.com/freshbind/freshbind/test/upstream"
)

const forensicsWithin = 10 * time.Minute

// TestForensics plays in a cluster without Freshbind, whose API server logs as docs/forensics.md says. What the watch
// convicts, the log convicts; what happens without lag raises no alarm.
func TestForensics(t *testing.T) {
	c, log := startLogged(t, controlplane.Options{ControllerManager: true})
	const release = "v1.0.3"
	c.RanOn(t, release)
	controllers, err := upstream.Start(t.Context(), c, upstream.Options{Version: release, Log: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	rec, err := Record(t.Context(), c.Config())
	if err != nil {
		t.Fatal(err)
	}
	version, err := upstream.APIVersion(release)
	if err != nil {
		t.Fatal(err)
	}
	current, late := play(t, c, version, "current"), play(t, c, version, "late")
	current.update("sandbox:v2", func() { current.full("sandbox:v2") })
	controllers.Proxy().Hold(upstream.SandboxTemplates.Group, upstream.SandboxTemplates.Resource)
	t.Cleanup(func() {
		controllers.Proxy().Release(upstream.SandboxTemplates.Group, upstream.SandboxTemplates.Resource)
	})
	late.update("sandbox:v2", func() {})
	controllers.Proxy().Release(upstream.SandboxTemplates.Group, upstream.SandboxTemplates.Resource)
	late.full("sandbox:v2")

	watched, err := rec.Judge(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	logSaysTheSame(t, log, watched)
	explained(t, log, watched)
}

// startLogged starts a cluster whose API server logs as docs/forensics.md says.
func startLogged(t *testing.T, o controlplane.Options) (c *controlplane.Cluster, log string) {
	t.Helper()
	dir := t.TempDir()
	log = filepath.Join(dir, "audit.log")
	policy := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(policy, []byte(documentedPolicy(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	o.Nodes, o.Log = 2, os.Stderr
	o.APIServerFlags = []string{"--audit-policy-file=" + policy, "--audit-log-path=" + log, "--audit-log-maxsize=100000"}
	c, err := controlplane.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c, log
}

// logSaysTheSame waits until the log convicts what the watch convicts: something in namespace late, and nothing in current.
func logSaysTheSame(t *testing.T, log string, watched *checker.Report) {
	t.Helper()
	want := convictions(watched, false)
	if !slices.ContainsFunc(want, func(s string) bool { return strings.HasPrefix(s, "late ") && strings.Contains(s, "Stale") }) {
		t.Fatalf("the watch found nothing stale, so this test has shown nothing: %v", want)
	}
	// The API server writes its log after it has answered.
	var got []string
	err := wait.PollUntilContextTimeout(t.Context(), time.Second, forensicsWithin, true, func(context.Context) (bool, error) {
		report, missing := judgeLog(t, log)
		got = convictions(report, true)
		for _, s := range got {
			if strings.HasPrefix(s, "current ") && !strings.Contains(s, "Fresh") {
				return false, nil
			}
		}
		return missing.Judgeable && slices.Equal(got, convictions(watched, true)), nil
	})
	if err != nil {
		t.Fatalf("binds (-watch,+log): %v\n%s", err, cmp.Diff(convictions(watched, true), got))
	}
	for _, s := range got {
		t.Log(s)
	}
}

// explained has a linearizability checker, which knows of caches and resourceVersions as little as users do, look at the
// same calls: it finds no order for just those binds that the auditor convicts.
func explained(t *testing.T, log string, watched *checker.Report) {
	t.Helper()
	file, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	calls, err := histories(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, namespace := range []string{"current", "late"} {
		var want []string
		for _, b := range watched.Binds {
			if b.Namespace == namespace && slices.ContainsFunc(b.Findings, func(f checker.Finding) bool { return f.Class == checker.Stale }) {
				want = append(want, b.Claim.Name)
			}
		}
		slices.Sort(want)
		whole, wrong := linear(calls[namespace])
		if diff := cmp.Diff(want, wrong); diff != "" {
			t.Errorf("namespace %s: binds that no order explains (-auditor,+linearizability):\n%s", namespace, diff)
		}
		if whole != (len(want) == 0) {
			t.Errorf("namespace %s: linearizable as a whole: %t, with %d stale binds", namespace, whole, len(want))
		}
		t.Logf("namespace %s: %d operations, linearizable: %t; binds that no order explains: %v", namespace, len(calls[namespace]), whole, wrong)
	}
}

// documentedPolicy is the one of docs/forensics.md.
func documentedPolicy(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/forensics.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```yaml\n(apiVersion: audit.k8s.io/v1\n.*?)```").FindSubmatch(text)
	if block == nil {
		t.Fatal("docs/forensics.md has no audit policy")
	}
	return string(block[1])
}

func judgeLog(t *testing.T, path string) (*checker.Report, auditlog.Missing) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	l := auditlog.New()
	if err := l.Read(path, file); err != nil {
		t.Fatal(err)
	}
	h, missing, err := l.History("", checker.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return h.Judge(), missing
}

// convictions are the binds with their class, those that are fresh only if asked for.
func convictions(r *checker.Report, fresh bool) []string {
	var out []string
	for _, b := range r.Binds {
		class := checker.Fresh
		for _, f := range b.Findings {
			// Who deleted what is in the log only.
			if f.Class != checker.Killed {
				class = f.Class
				break
			}
		}
		if fresh || class != checker.Fresh {
			out = append(out, fmt.Sprintf("%s %s %s warm=%t %s", b.Namespace, b.Claim.Name, b.Sandbox.Name, b.Warm, class))
		}
	}
	slices.Sort(out)
	return out
}

// played is a namespace with a Recreate pool that is full.
type played struct {
	t    *testing.T
	n    *Namespace
	pool Pool
}

func play(t *testing.T, c *controlplane.Cluster, version, name string) *played {
	t.Helper()
	n, err := CreateNamespace(t.Context(), c.Config(), version, name, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &played{t: t, n: n, pool: Pool{Name: "python", Template: "python", Image: "sandbox:v1", Replicas: 3, Strategy: Recreate}}
	if err := n.CreatePool(t.Context(), p.pool); err != nil {
		t.Fatal(err)
	}
	p.full("sandbox:v1")
	p.claims("before")
	p.full("sandbox:v1")
	return p
}

func (p *played) full(image string) {
	p.t.Helper()
	if _, err := p.n.WaitPool(p.t.Context(), p.pool, image, forensicsWithin); err != nil {
		p.t.Fatal(err)
	}
}

func (p *played) claims(prefix string) {
	p.t.Helper()
	names := Names(prefix, 2)
	if err := p.n.CreateClaims(p.t.Context(), p.pool, names...); err != nil {
		p.t.Fatal(err)
	}
	if err := p.n.WaitClaims(p.t.Context(), forensicsWithin, names...); err != nil {
		p.t.Fatal(err)
	}
}

// update edits the template, and claims what there is when ready returns.
func (p *played) update(image string, ready func()) {
	p.t.Helper()
	if _, err := p.n.SetImage(p.t.Context(), p.pool.Template, image); err != nil {
		p.t.Fatal(err)
	}
	ready()
	p.claims("after")
}
