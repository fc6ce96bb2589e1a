package app

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/freshbind/freshbind/routes/gatewaytest"
)

// gatewayStandIn takes no push, and sends a request where a header says if it is
// told to believe that.
func gatewayStandIn(t *testing.T, believes bool) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ip := r.Header.Get("X-Sandbox-Pod-Ip")
		switch {
		case r.URL.Path == "/refresh":
			w.WriteHeader(http.StatusUnauthorized)
		case believes && ip != "":
			to := &url.URL{Scheme: "http", Host: ip + ":" + r.Header.Get("Port")}
			(&httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(to) }}).ServeHTTP(w, r)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func runConformance(args ...string) (string, error) {
	var out bytes.Buffer
	cmd := newConformanceCommand(genericiooptions.IOStreams{Out: &out, ErrOut: &out})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	err := cmd.Execute()
	return out.String(), err
}

func TestRoutesConformance(t *testing.T) {
	for name, tc := range map[string]struct {
		believes bool
		want     string
		err      string
	}{
		"good": {want: "client-names-address             Passed"},
		"bad":  {believes: true, want: "client-names-address             Failed", err: "1 of 13 tests failed"},
	} {
		t.Run(name, func(t *testing.T) {
			gateway := gatewayStandIn(t, tc.believes)
			args := []string{
				"--probe-url", gateway + "/{id}", "--probe-header", "Port: {port}", "--refresh-url", gateway + "/refresh", "--canary-address", "127.0.0.1",
			}
			out, err := runConformance(args...)
			if got := message(err); got != tc.err || !strings.Contains(out, tc.want) {
				t.Errorf("got error %q, want %q, and a line with %q in:\n%s", got, tc.err, tc.want, out)
			}
			out, _ = runConformance(append(args, "-o", "json")...)
			var report struct{ Tests []gatewaytest.Outcome }
			if err := json.Unmarshal([]byte(out), &report); err != nil || len(report.Tests) != 13 {
				t.Errorf("got %d tests, %v, want 13 in:\n%s", len(report.Tests), err, out)
			}
			if out, _ = runConformance(append(args, "-o", "jsonpath={.kind}")...); out != "ConformanceReport" {
				t.Errorf("printed %q, want what was asked for", out)
			}
		})
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestRoutesConformanceUsage(t *testing.T) {
	good := []string{"--probe-url", "http://gateway/{id}", "--canary-address", "127.0.0.1"}
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no probe":           {[]string{"--canary-address", "127.0.0.1"}, "--probe-url is required: say how a sandbox is reached through the gateway"},
		"probe without host": {[]string{"--probe-url", "gateway/{id}"}, `--probe-url "gateway/{id}" is no http or https URL`},
		"refresh":            {append(good, "--refresh-url", "x"), `--refresh-url "x" is no http or https URL`},
		"no canary":          {good[:2], `--canary-address "": give an IP address of this process that the gateway can reach`},
		"canary everywhere":  {append(good, "--canary-address", "0.0.0.0"), `--canary-address "0.0.0.0:0": give an IP address of this process that the gateway can reach`},
		"header":             {append(good, "--probe-header", "x"), `--probe-header "x": write it as "Name: value"`},
		"half a certificate": {append(good, "--client-key", "x"), "--client-certificate and --client-key are given together or not at all"},
		"timeout":            {append(good, "--timeout", "0s"), "--timeout 0s is not positive"},
		"wait":               {append(good, "--fence-wait", "-1s"), "--fence-wait -1s is negative"},
		"output":             {append(good, "-o", "xml"), `-o "xml": accepted are json, yaml, jsonpath=, go-template=, custom-columns=`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := runConformance(tc.args...)
			if got := message(err); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			var exit *ExitError
			if !errors.As(err, &exit) || exit.Code != exitUsage {
				t.Errorf("got %T, want exit code %d", err, exitUsage)
			}
		})
	}
}
