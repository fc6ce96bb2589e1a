package app

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// auditLogLine is one write in an audit log.
func auditLogLine(t *testing.T, verb, group, resource, kind, rv string, code int, level string) string {
	t.Helper()
	line, err := json.Marshal(map[string]any{
		"kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": level, "auditID": rv, "stage": "ResponseComplete", "verb": verb,
		"requestURI": "/", "user": map[string]any{"username": "u"}, "responseStatus": map[string]any{"code": code},
		"objectRef":                map[string]any{"apiGroup": group, "resource": resource, "namespace": "prod", "name": "x"},
		"responseObject":           map[string]any{"apiVersion": group + "/v1beta1", "kind": kind, "metadata": map[string]any{"name": "x", "namespace": "prod", "uid": "u-" + kind, "resourceVersion": rv, "creationTimestamp": "2026-01-02T10:00:01Z"}},
		"requestReceivedTimestamp": "2026-01-02T10:00:01.000000Z", "stageTimestamp": "2026-01-02T10:00:01.010000Z",
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(line) + "\n"
}

func TestAuditCheckReadsAuditLogs(t *testing.T) {
	const ext = "extensions.agents.x-k8s.io"
	claim := auditLogLine(t, "create", ext, "sandboxclaims", "SandboxClaim", "11", 201, "RequestResponse")
	sandbox := auditLogLine(t, "create", "agents.x-k8s.io", "sandboxes", "Sandbox", "12", 201, "RequestResponse")
	meta := auditLogLine(t, "create", ext, "sandboxclaims", "SandboxClaim", "11", 201, "Metadata")
	const kruise = "agents.kruise.io"
	box := auditLogLine(t, "create", kruise, "sandboxes", "Sandbox", "13", 201, "RequestResponse")
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "audit.log")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cases := map[string]struct {
		args     []string
		in, want string
		code     int
	}{
		"one file":             {args: []string{"-f", file(sandbox + claim)}, want: "No write to pods is in the log."},
		"two files":            {args: []string{"-f", file(sandbox), "-f", file(claim)}, want: "No write to pods is in the log."},
		"standard input":       {args: []string{"-f", "-"}, in: claim + sandbox, want: "No write to pods is in the log."},
		"a page":               {args: []string{"-f", "-", "-o", "html"}, in: claim + sandbox, want: "<!DOCTYPE html>"},
		"JSON":                 {args: []string{"-f", "-", "-o", "json"}, in: claim + sandbox, want: `"missing": [`},
		"too little":           {args: []string{"-f", "-"}, in: claim, want: "too little is in the log", code: exitFailed},
		"nothing but metadata": {args: []string{"-f", "-"}, in: meta, want: "nothing was judged", code: exitFailed},
		"no event":             {args: []string{"-f", "-"}, in: claim + "{oops\n" + claim, want: "-: line 2: not an audit event", code: exitFailed},
		"OpenKruise Agents":    {args: []string{"-f", "-"}, in: box, want: "No write to sandboxsets is in the log."},
		"two platforms":        {args: []string{"-f", "-"}, in: claim + box, want: "the log holds writes of agent-sandbox and of openkruise-agents", code: exitUsage},
		"one of two": {args: []string{"-f", "-", "--platform", "openkruise-agents"}, in: claim + box,
			want: "No write to sandboxclaims is in the log. Binds for SandboxClaims are not judged; those for users of E2B, who have none, are."},
		"another platform":    {args: []string{"-f", "-", "--platform", "other"}, in: claim, want: "--platform other: use agent-sandbox or openkruise-agents", code: exitUsage},
		"a recording has one": {args: []string{"-f", file(`{"type":"SYNCED"}`), "--platform", "agent-sandbox"}, want: "a recording is of one warm-pool system", code: exitUsage},
		"a recording beside":  {args: []string{"-f", "-", "-f", file(`{"type":"SYNCED"}`)}, in: claim, want: "a recording is judged alone", code: exitUsage},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := startAudit(t, tc.in, append([]string{"check"}, tc.args...)...)
			err := <-r.done
			output := r.out.String() + r.errOut.String()
			if err != nil {
				output += err.Error()
			}
			if auditExitCode(err) != tc.code || !strings.Contains(output, tc.want) {
				t.Errorf("ended with %v, want exit code %d and %q:\n%s", err, tc.code, tc.want, output)
			}
		})
	}
}

// The page shows binds that were fresh, however long they are over: a log of many writes is judged part by part.
func TestAuditCheckShowsWhatWasFreshLongAgo(t *testing.T) {
	var log strings.Builder
	rv := 100
	write := func(verb string, code int, group, resource, kind, uid string, metadata map[string]any) {
		rv++
		metadata["name"], metadata["namespace"], metadata["uid"], metadata["resourceVersion"] = "x", "prod", uid, strconv.Itoa(rv)
		at := time.Date(2026, 1, 2, 10, 0, rv, 0, time.UTC).Format(time.RFC3339Nano)
		if err := json.NewEncoder(&log).Encode(map[string]any{
			"kind": "Event", "level": "RequestResponse", "stage": "ResponseComplete", "verb": verb, "requestURI": "/",
			"user": map[string]any{"username": "u"}, "responseStatus": map[string]any{"code": code},
			"objectRef":                map[string]any{"apiGroup": group, "resource": resource, "namespace": "prod", "name": "x"},
			"responseObject":           map[string]any{"apiVersion": group + "/v1beta1", "kind": kind, "metadata": metadata},
			"requestReceivedTimestamp": at, "stageTimestamp": at,
		}); err != nil {
			t.Fatal(err)
		}
	}
	const core, ext = "agents.x-k8s.io", "extensions.agents.x-k8s.io"
	owner := []any{map[string]any{"apiVersion": ext + "/v1beta1", "kind": "SandboxClaim", "name": "x", "uid": "claim", "controller": true}}
	write("create", 201, ext, "sandboxclaims", "SandboxClaim", "claim", map[string]any{})
	write("create", 201, core, "sandboxes", "Sandbox", "box", map[string]any{"ownerReferences": owner})
	write("delete", 200, core, "sandboxes", "Sandbox", "box", map[string]any{"ownerReferences": owner})
	write("delete", 200, ext, "sandboxclaims", "SandboxClaim", "claim", map[string]any{})
	for range 30_000 {
		write("patch", 200, ext, "sandboxwarmpools", "SandboxWarmPool", "pool", map[string]any{})
	}
	r := startAudit(t, log.String(), "check", "-f", "-", "-o", "html")
	if err := <-r.done; auditExitCode(err) == exitUsage {
		t.Fatal(err)
	}
	if page := r.out.String(); !strings.Contains(page, `: 1 bind"`) {
		t.Errorf("the bind is not on the page:\n%.2000s", page)
	}
}
