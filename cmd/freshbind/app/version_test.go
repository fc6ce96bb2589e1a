package app

import (
	"bytes"
	"encoding/json"
	"runtime"
	"strings"
	"testing"
)

func mainSays(t *testing.T, args ...string) (out, errOut string, code int) {
	t.Helper()
	var o, e bytes.Buffer
	code = Main(args, strings.NewReader(""), &o, &e)
	return o.String(), e.String(), code
}

func TestVersion(t *testing.T) {
	plain, _, code := mainSays(t, "version")
	if want := "freshbind " + Version() + " commit "; code != 0 || !strings.HasPrefix(plain, want) {
		t.Errorf("version: code %d, %q, want %q", code, plain, want)
	}
	for _, args := range [][]string{{"--version"}, {"version", "--client"}} {
		if got, errText, code := mainSays(t, args...); got != plain || code != 0 {
			t.Errorf("%v: code %d, %q (%s), want %q", args, code, got, errText, plain)
		}
	}
	out, errText, _ := mainSays(t, "version", "--client", "-o", "json")
	var got struct {
		APIVersion, Kind string
		ClientVersion    struct{ GitVersion, Platform string }
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v in %q (%s)", err, out, errText)
	}
	if got.ClientVersion.GitVersion != Version() || got.ClientVersion.Platform != runtime.GOOS+"/"+runtime.GOARCH || got.Kind != "Version" || got.APIVersion == "" {
		t.Errorf("got %+v", got)
	}
	if out, _, _ := mainSays(t, "version", "-o", "jsonpath={.clientVersion.gitVersion}"); out != Version() {
		t.Errorf("by jsonpath: %q, want %q", out, Version())
	}
	if _, errText, code := mainSays(t, "version", "-o", "wide"); code != exitUsage || !strings.Contains(errText, "accepted are json, yaml") {
		t.Errorf("a format that it does not know: code %d, %q", code, errText)
	}
}

// Help texts are about what a command does, not about how a cluster is reached.
func TestOptions(t *testing.T) {
	help, _, _ := mainSays(t, "status", "--help")
	if strings.Contains(help, "--client-certificate") || !strings.Contains(help, "--namespace") || !strings.Contains(help, "--selector") || !strings.Contains(help, " options\" for the flags") {
		t.Errorf("help is\n%s", help)
	}
	if out, _, code := mainSays(t, "options"); code != 0 || !strings.Contains(out, "--client-certificate") {
		t.Errorf("code %d, options are\n%s", code, out)
	}
	// A flag of a command's own keeps its place, whatever it is called.
	if help, _, _ := mainSays(t, "routes", "conformance", "--help"); !strings.Contains(help, "--certificate-authority") {
		t.Errorf("help is\n%s", help)
	}
}

func TestCompletionOfValues(t *testing.T) {
	for name, tc := range map[string]struct{ args, want []string }{
		"-o of a table":        {[]string{"status", "-o", ""}, []string{"json", "wide", "name", "jsonpath=", "custom-columns="}},
		"-o of words":          {[]string{"doctor", "-o", ""}, []string{"json", "yaml"}},
		"--dry-run":            {[]string{"rollout", "pause", "--dry-run="}, []string{"none", "client", "server"}},
		"--dry-run of another": {[]string{"release", "--dry-run="}, []string{"client"}},
	} {
		t.Run(name, func(t *testing.T) {
			out, _, _ := mainSays(t, append([]string{"__complete"}, tc.args...)...)
			for _, want := range tc.want {
				if !strings.Contains(out, want) {
					t.Errorf("%q is not in\n%s", want, out)
				}
			}
		})
	}
}

func TestWebhookURLs(t *testing.T) {
	for url, want := range map[string]string{
		"https://127.0.0.1:9443":       "",
		"http://127.0.0.1:9443":        "by https alone",
		"127.0.0.1:9443":               "127.0.0.1:9443",
		"https://":                     "by https alone",
		"https://u:p@host":             "not allowed",
		"https://host/?a=b":            "not allowed",
		"https://host:9443/%zz/prefix": "not a URL",
	} {
		out, errText, code := mainSays(t, "webhook-config", "--url", url)
		if want == "" && code != 0 || want != "" && (code != exitUsage || !strings.Contains(errText, want) || out != "") {
			t.Errorf("%s: code %d, %q, want %q", url, code, errText, want)
		}
	}
}
