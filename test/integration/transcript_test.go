package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

const (
	// envUpdateDocs has the transcripts written instead of compared.
	envUpdateDocs = "FRESHBIND_UPDATE_DOCS"
	transcripts   = "../../docs/dry-run.md"
)

// The transcripts in the documentation are what kubectl prints.
func TestTranscripts(t *testing.T) {
	s := sharedWorld(t).enforced(t)
	python := s.pool(scenario.Pool{Replicas: 3, Strategy: scenario.Recreate})
	s.must(s.Create(t.Context(), builders.MakePool(s.Name, "node").Replicas(2).Obj()))
	s.full(scenario.Pool{Name: "node", Template: python.Template, Replicas: 2}, "")
	// As if it had been applied before: kubectl warns else.
	s.patch(upstream.SandboxTemplates, python.Template, `{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}"}}}`)
	p := s.person()
	for name, content := range map[string]string{
		"template.yaml": text(t, builders.TemplateFrom(s.get(upstream.SandboxTemplates, python.Template)).Image("sandbox:v2").Obj()),
		"typo.yaml":     text(t, builders.MakeClaim(s.Name, "c1").Pool("pyhton").Obj()),
		"claim.yaml":    text(t, builders.MakeClaim(s.Name, "c1").Pool("python").Obj()),
	} {
		s.must(os.WriteFile(filepath.Join(p.home, name), []byte(content), 0o600))
	}
	doc, err := os.ReadFile(transcripts)
	s.must(err)
	made := ""
	s.w.advised(t, func() { made = s.transcribe(p, string(doc)) })
	if os.Getenv(envUpdateDocs) != "" {
		s.must(os.WriteFile(transcripts, []byte(made), 0o600))
		return
	}
	if diff := cmp.Diff(string(doc), made); diff != "" {
		t.Errorf("docs/dry-run.md (-want,+got; %s=1 writes it):\n%s", envUpdateDocs, diff)
	}
}

// transcribe runs the commands in the blocks of a document that show a console,
// and puts what they print in place of what stands there.
func (s *stage) transcribe(p *person, doc string) string {
	s.t.Helper()
	var out strings.Builder
	console := false
	for line := range strings.Lines(doc) {
		command, isCommand := strings.CutPrefix(line, "$ kubectl ")
		switch {
		case strings.HasPrefix(line, "```"):
			console = strings.TrimSpace(line) == "```console"
			out.WriteString(line)
		case console && isCommand:
			out.WriteString(line)
			out.WriteString(s.printed(p, strings.Fields(command)))
		case !console:
			out.WriteString(line)
		}
	}
	return out.String()
}

// printed is what kubectl says, in a namespace that is named prod.
func (s *stage) printed(p *person, args []string) string {
	s.t.Helper()
	for i, arg := range args {
		switch {
		case arg == "prod" || arg == "namespace/prod":
			args[i] = strings.Replace(arg, "prod", s.Name, 1)
		case strings.HasSuffix(arg, ".yaml"):
			args[i] = filepath.Join(p.home, arg)
		}
	}
	output, _ := p.run(p.kubectl, "", args...)
	return strings.NewReplacer(s.Name, "prod", p.home+"/", "").Replace(output)
}
