package app

import (
	"bytes"
	"strings"
	"testing"
)

// Whatever a command prints for people, names and errors included, moves no cursor.
func TestATerminalObeysNothingThatIsPrinted(t *testing.T) {
	const template = `{"apiVersion":"extensions.agents.x-k8s.io/v1beta1","kind":"SandboxTemplate","metadata":{"name":"a\u001b[2J"},` +
		`"spec":{"podTemplate":{"spec":{"containers":[{"name":"c","image":"i"}]}}}}`
	for name, tc := range map[string]struct {
		args             []string
		wantOut, wantErr string
	}{
		"output": {args: []string{"hash", "-f", "-"}, wantOut: "SandboxTemplate/a^[[2J "},
		"errors": {args: []string{"audit", "check", "-f", "none\x1b[2J"}, wantErr: "none^[[2J"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errOut bytes.Buffer
			Main(tc.args, strings.NewReader(template), &out, &errOut)
			if !strings.Contains(out.String(), tc.wantOut) || !strings.Contains(errOut.String(), tc.wantErr) {
				t.Errorf("printed %q and %q, want %q and %q", out.String(), errOut.String(), tc.wantOut, tc.wantErr)
			}
			if printed := out.String() + errOut.String(); strings.ContainsRune(printed, '\x1b') {
				t.Errorf("an escape character is printed: %q", printed)
			}
		})
	}
}
