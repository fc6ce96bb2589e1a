package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/recordertest"
)

// auditOutput is a buffer that can be read while the command writes.
type auditOutput struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *auditOutput) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *auditOutput) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// auditRun is one run of the command.
type auditRun struct {
	out, errOut auditOutput
	done        chan error
	stop        context.CancelFunc
}

func startAudit(t *testing.T, in string, args ...string) *auditRun {
	t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Minute)
	r := &auditRun{done: make(chan error, 1), stop: stop}
	cmd := NewAuditCommand(genericiooptions.IOStreams{In: strings.NewReader(in), Out: &r.out, ErrOut: &r.errOut})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	go func() { r.done <- cmd.ExecuteContext(ctx) }()
	t.Cleanup(stop)
	return r
}

func (r *auditRun) until(t *testing.T, part string) {
	t.Helper()
	err := wait.PollUntilContextTimeout(context.Background(), 10*time.Millisecond, 10*time.Minute, true, func(context.Context) (bool, error) {
		return strings.Contains(r.out.String()+r.errOut.String(), part), nil
	})
	if err != nil {
		t.Fatalf("wait for %q: %v\n%s%s", part, err, r.out.String(), r.errOut.String())
	}
}

func auditExitCode(err error) int {
	var exit *ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.Code
	}
	return exitFailed
}

func auditKubeconfig(t *testing.T, f *recordertest.API) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	config := clientcmdapi.NewConfig()
	config.Clusters["test"] = &clientcmdapi.Cluster{Server: f.Config().Host}
	config.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", Namespace: "default"}
	config.CurrentContext = "test"
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatalf("write kubeconfig: %v", err)
	}
	return path
}

// auditCast puts a Recreate pool with one ready member into the cluster.
func auditCast(f *recordertest.API) (template, pool, member *unstructured.Unstructured) {
	template = builders.MakeTemplate("default", "python").Obj()
	f.Put(template)
	pool = builders.MakePool("default", "python").Strategy("Recreate").Obj()
	f.Put(pool)
	member = builders.MakeMember(pool, template).Name("python-m1").Ready(true).Obj()
	f.Put(member)
	return template, pool, member
}

// auditStaleBind updates the template and binds the old member to a claim that is made after that.
func auditStaleBind(f *recordertest.API, template, member *unstructured.Unstructured) {
	f.Put(builders.TemplateFrom(template).Image("sandbox:v2").Obj())
	claim := builders.MakeClaim("default", "c1").Obj()
	f.Put(claim)
	f.Put(builders.ClaimFrom(claim).Names("python-m1").Obj())
	f.Put(builders.Bound(member, claim, template).Obj())
	f.Put(builders.ClaimFrom(claim).Names("python-m1").Ready(true).Obj())
}

func TestAuditWatchNamesAStaleBindAsItHappens(t *testing.T) {
	f := recordertest.New(t, recordertest.Settings{})
	template, _, member := auditCast(f)
	recording := filepath.Join(t.TempDir(), "recording.jsonl")
	r := startAudit(t, "", "watch", "--kubeconfig", auditKubeconfig(t, f), "--record", recording)
	r.until(t, "Watching namespace default since")
	r.until(t, "(resourceVersion 103, agent-sandbox v1beta1). No sandbox has a claim yet.")
	auditStaleBind(f, template, member)
	r.until(t, "STALE         default/c1 -> python-m1 (warm, pool python): runs python@101")
	r.stop()
	err := <-r.done
	if auditExitCode(err) != exitFailed || !errors.Is(err, errAuditFound) {
		t.Errorf("ended with %v, want exit code 1 for what was found", err)
	}
	live := r.out.String()
	if got := strings.Count(live, "STALE  "); got != 2 {
		t.Errorf("STALE stands %d times in the output, want one line and one column:\n%s", got, live)
	}
	auditCheckSaysTheSame(t, recording, live)
}

// What a tenant writes into a template adds no line to those about others.
func TestAuditPrintsABindInOneLine(t *testing.T) {
	f := recordertest.New(t, recordertest.Settings{})
	template, _, member := auditCast(f)
	recording := filepath.Join(t.TempDir(), "recording.jsonl")
	r := startAudit(t, "", "watch", "--kubeconfig", auditKubeconfig(t, f), "--record", recording)
	r.until(t, "Watching namespace default since")
	containers := []any{map[string]any{
		"name": "c", "image": "v2", "resources": map[string]any{"limits": map[string]any{"cpu\n\x1b[2JSTALE": "1"}},
	}}
	auditStaleBind(f, builders.TemplateFrom(template).Set(containers, "spec", "podTemplate", "spec", "containers").Obj(), member)
	const want = `limits.cpu\n^[[2JSTALE`
	r.until(t, want)
	r.stop()
	watched := <-r.done
	check := startAudit(t, "", "check", "-f", recording)
	if checked := <-check.done; auditExitCode(watched) != exitFailed || auditExitCode(checked) != exitFailed {
		t.Errorf("watch ended with %v and check with %v, want that both found something", watched, checked)
	}
	for command, output := range map[string]string{"watch": r.out.String(), "check": check.out.String()} {
		if !strings.Contains(output, want) || strings.Contains(output, "\x1b") {
			t.Errorf("%s prints\n%q", command, output)
		}
	}
}

func auditCheckSaysTheSame(t *testing.T, recording, live string) {
	t.Helper()
	check := startAudit(t, "", "check", "-f", recording)
	if err := <-check.done; auditExitCode(err) != exitFailed {
		t.Errorf("check ended with %v, want exit code 1", err)
	}
	_, want, _ := strings.Cut(live, "\n") // without the line about the start
	if got := check.out.String(); got != want {
		t.Errorf("check says\n%s\nwant what watch said\n%s", got, want)
	}
	info, err := os.Stat(recording)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("recording: mode %v, %v: want 0600, it holds env values", info.Mode(), err)
	}
	again := startAudit(t, "", "watch", "--record", recording)
	if err := <-again.done; auditExitCode(err) != exitUsage {
		t.Errorf("recording over a recording ended with %v, want exit code 2", err)
	}
}

func TestAuditWatchForAWhile(t *testing.T) {
	f := recordertest.New(t, recordertest.Settings{})
	template, pool, _ := auditCast(f)
	claim := builders.MakeClaim("default", "old").Obj()
	f.Put(claim)
	f.Put(builders.Bound(builders.MakeMember(pool, template).Name("python-m0").Obj(), claim, template).Obj())
	r := startAudit(t, "", "watch", "-A", "--kubeconfig", auditKubeconfig(t, f), "--duration", "10ms", "-o", "json")
	if err := <-r.done; err != nil {
		t.Fatalf("ended with %v, want no error: nothing bad happened", err)
	}
	var report struct {
		Namespaces []struct{ BoundBefore int }
		Findings   []any
	}
	if err := json.Unmarshal([]byte(r.out.String()), &report); err != nil {
		t.Fatalf("standard output is not one JSON document: %v\n%s", err, r.out.String())
	}
	if len(report.Namespaces) != 1 || report.Namespaces[0].BoundBefore != 1 || len(report.Findings) != 0 {
		t.Errorf("got %+v, want one sandbox bound before and no findings", report)
	}
	if !strings.Contains(r.errOut.String(), "Watching all namespaces") || !strings.Contains(r.errOut.String(), "1 sandbox had its claim before") {
		t.Errorf("standard error says %q, want since when and what is not known", r.errOut.String())
	}
}

func TestAuditWatchWithoutAgentSandbox(t *testing.T) {
	f := recordertest.New(t, recordertest.Settings{Version: "v9"})
	r := startAudit(t, "", "watch", "-A", "--kubeconfig", auditKubeconfig(t, f))
	err := <-r.done
	if auditExitCode(err) != exitFailed || !strings.Contains(err.Error(), "agent-sandbox's CRDs were not found") ||
		!strings.Contains(err.Error(), "sandboxwarmpools.extensions.agents.x-k8s.io") {
		t.Errorf("got %v, want what was looked for", err)
	}
}

func TestAuditCheckFormats(t *testing.T) {
	recording := auditRecording(t)
	for output, parse := range map[string]func([]byte, any) error{
		"json": json.Unmarshal,
		"yaml": func(raw []byte, into any) error { return yaml.Unmarshal(raw, into) },
	} {
		t.Run(output, func(t *testing.T) {
			r := startAudit(t, recording, "check", "-f", "-", "-o", output)
			if err := <-r.done; auditExitCode(err) != exitFailed {
				t.Errorf("ended with %v, want exit code 1", err)
			}
			var got struct {
				Findings []struct {
					Class    string
					Claim    struct{ Name string }
					Expected struct{ Template string }
				}
			}
			if err := parse([]byte(r.out.String()), &got); err != nil {
				t.Fatalf("parse: %v\n%s", err, r.out.String())
			}
			if len(got.Findings) != 1 || got.Findings[0].Class != "Stale" || got.Findings[0].Claim.Name != "c1" ||
				got.Findings[0].Expected.Template != "python" {
				t.Errorf("got %+v, want the stale bind of c1", got)
			}
		})
	}
	for output, want := range map[string]string{
		"jsonpath={.kind} {.findings[0].claim.name}":       "AuditReport c1",
		"go-template={{range .findings}}{{.class}}{{end}}": "Stale",
	} {
		t.Run(output, func(t *testing.T) {
			r := startAudit(t, recording, "check", "-f", "-", "-o", output)
			if err := <-r.done; auditExitCode(err) != exitFailed || r.out.String() != want {
				t.Errorf("ended with %v and printed %q, want exit code 1 and %q", err, r.out.String(), want)
			}
		})
	}
	t.Run("no headers", func(t *testing.T) {
		r := startAudit(t, recording, "check", "-f", "-", "--no-headers")
		if err := <-r.done; auditExitCode(err) != exitFailed || strings.Contains(r.out.String(), "NAMESPACE") {
			t.Errorf("ended with %v, want exit code 1 and no headers:\n%s", err, r.out.String())
		}
	})
	t.Run("another", func(t *testing.T) {
		r := startAudit(t, recording, "check", "-f", "-", "-o", "xml")
		if err := <-r.done; auditExitCode(err) != exitUsage || !strings.Contains(err.Error(), "accepted are json, yaml, wide, html, jsonpath=") {
			t.Errorf("ended with %v, want wrong usage", err)
		}
	})
	t.Run("wide", func(t *testing.T) {
		r := startAudit(t, recording, "check", "-f", "-", "-o", "wide")
		if err := <-r.done; auditExitCode(err) != exitFailed {
			t.Errorf("ended with %v, want exit code 1", err)
		}
		for _, column := range []string{"DUPLICATE", "COLD-BESIDE-READY", "STALE-NEW"} {
			if !strings.Contains(r.out.String(), column) {
				t.Errorf("no column %s:\n%s", column, r.out.String())
			}
		}
	})
}

// auditRecording is a recording with one stale bind, and lost events.
func auditRecording(t *testing.T) string {
	t.Helper()
	f := recordertest.New(t, recordertest.Settings{})
	template, _, member := auditCast(f)
	path := filepath.Join(t.TempDir(), "recording.jsonl")
	r := startAudit(t, "", "watch", "--kubeconfig", auditKubeconfig(t, f), "--record", path)
	r.until(t, "Watching")
	auditStaleBind(f, template, member)
	r.until(t, "STALE")
	r.stop()
	if err := <-r.done; auditExitCode(err) != exitFailed {
		t.Fatalf("watch ended with %v, want exit code 1", err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestAuditCheckNotes(t *testing.T) {
	recording := auditRecording(t)
	lost := `{"type":"GAP","resource":"pods","after":"110","resourceVersion":"120","seenAt":"2026-01-02T10:00:00Z"}` + "\n"
	r := startAudit(t, recording+lost+`{"type":"ADDED","obj`, "check", "-f", "-")
	if err := <-r.done; auditExitCode(err) != exitFailed {
		t.Errorf("ended with %v, want exit code 1", err)
	}
	if want := "Events of pods between resourceVersion 110 and 120 are lost"; !strings.Contains(r.out.String(), want) {
		t.Errorf("want %q in\n%s", want, r.out.String())
	}
	if want := "The recording ends in the middle of line"; !strings.Contains(r.errOut.String(), want) {
		t.Errorf("want %q in\n%s", want, r.errOut.String())
	}
}

func TestAuditUsage(t *testing.T) {
	cases := map[string]struct {
		in   string
		args []string
		code int
		want string
	}{
		"no file":            {args: []string{"check"}, code: exitUsage, want: "-f is required"},
		"an unknown format":  {args: []string{"check", "-f", "-", "-o", "xml"}, code: exitUsage, want: `-o "xml"`},
		"an argument":        {args: []string{"check", "file"}, code: exitUsage, want: `unexpected argument "file"`},
		"a negative time":    {args: []string{"watch", "--duration", "-1s"}, code: exitUsage, want: "--duration"},
		"a file that is not": {args: []string{"check", "-f", "/no/such/file"}, code: exitFailed, want: "-f"},
		"no recording":       {in: "hello\n", args: []string{"check", "-f", "-"}, code: exitFailed, want: "line 1"},
		"nothing":            {args: []string{"check", "-f", "-"}, code: exitFailed, want: "no complete start"},
		"an unknown event":   {in: `{"type":"ODD"}` + "\n", args: []string{"check", "-f", "-"}, code: exitFailed, want: `line 1: event type "ODD"`},
		"no such context":    {args: []string{"watch", "--context", "nowhere"}, code: exitFailed, want: "nowhere"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
			r := startAudit(t, tc.in, tc.args...)
			err := <-r.done
			if auditExitCode(err) != tc.code || err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v (exit code %d), want exit code %d and %q", err, auditExitCode(err), tc.code, tc.want)
			}
		})
	}
}
