package routes

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/freshbind/freshbind/test/fixture"
)

// gateway sends a request to a sandbox. The answer is the status that the client
// sees, and the identity of who answered.
type gateway interface {
	send(ctx context.Context, sandbox string) (status int, identity string, err error)
}

// plain is a gateway of a few lines: it checks, and goes where it is told.
type plain struct{ w *world }

func (p *plain) send(ctx context.Context, sandbox string) (int, string, error) {
	status, header, _, err := p.w.request(ctx, "https://"+p.w.server+"/v1/check/traefik", sandbox, "Bearer "+token)
	if err != nil || status != http.StatusOK {
		return status, "", err
	}
	status, _, body, err := p.w.request(ctx, "http://"+header.Get("X-Freshbind-Destination")+"/", sandbox, "")
	return status, body, err
}

func (w *world) request(ctx context.Context, url, sandbox, authorization string) (int, http.Header, string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, nil, "", err
	}
	r.Header.Set("X-Sandbox-ID", sandbox)
	r.Header.Set("X-Sandbox-Namespace", namespace)
	r.Header.Set("X-Sandbox-Port", strconv.Itoa(w.backends.port))
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	response, err := w.client.Do(r)
	if err != nil {
		return 0, nil, "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, 4096))
	return response.StatusCode, response.Header, string(body), err
}

// realNginx is nginx with the configuration that the documentation shows.
type realNginx struct {
	w       *world
	address string
}

func (n *realNginx) send(ctx context.Context, sandbox string) (int, string, error) {
	status, _, body, err := n.w.request(ctx, "http://"+n.address+"/", sandbox, "")
	return status, body, err
}

// nginxProgram finds nginx, which is often in no user's path.
func nginxProgram() (string, error) {
	if program, err := exec.LookPath("nginx"); err == nil {
		return program, nil
	}
	return exec.LookPath("/usr/sbin/nginx")
}

// startNginx returns nil where nginx is not installed.
func startNginx(t *testing.T, w *world) *realNginx {
	t.Helper()
	program, err := nginxProgram()
	if err != nil {
		return nil
	}
	dir := t.TempDir()
	n := &realNginx{w: w, address: fixture.FreeAddress(t)}
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(nginxConfiguration(t, dir, w, n.address)), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program, "-p", dir, "-c", file, "-e", filepath.Join(dir, "error.log"), "-g", "daemon off; master_process off;")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	t.Cleanup(func() {
		_ = command.Process.Signal(os.Interrupt)
		err := <-ended
		if t.Failed() {
			errorLog, _ := os.ReadFile(filepath.Join(dir, "error.log"))
			t.Logf("nginx: %v: %s", err, errorLog[:min(len(errorLog), 4096)])
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	for {
		connection, err := net.DialTimeout("tcp", n.address, time.Second)
		if err == nil {
			_ = connection.Close()
			return n
		}
		select {
		case err := <-ended:
			errorLog, _ := os.ReadFile(filepath.Join(dir, "error.log"))
			ended <- err
			t.Fatalf("nginx ended: %v\n%s", err, errorLog)
		case <-ctx.Done():
			t.Fatalf("nginx does not listen: %v", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// nginxConfiguration is the documentation's, with the names of this test.
func nginxConfiguration(t *testing.T, dir string, w *world, listen string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/routes.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, ok := strings.Cut(string(text), "```nginx\n")
	block, _, closed := strings.Cut(block, "```\n")
	if !ok || !closed {
		t.Fatal("docs/routes.md shows no configuration of nginx")
	}
	for old, now := range map[string]string{
		"server freshbind-routes.freshbind-system.svc:443;": "server " + w.server + ";",
		"listen 8080;": "listen " + listen + ";",
		"Bearer TOKEN": "Bearer " + token,
		"proxy_ssl_name                freshbind-routes.freshbind-system.svc;": "proxy_ssl_name example.com;",
		"/etc/nginx/freshbind-ca.crt":                                          w.ca,
	} {
		if strings.Count(block, old) != 1 {
			t.Fatalf("the documentation's configuration of nginx lacks %q", old)
		}
		block = strings.Replace(block, old, now, 1)
	}
	paths := ""
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		paths += fmt.Sprintf("%s_temp_path %s;\n", kind, filepath.Join(dir, kind))
	}
	return fmt.Sprintf("worker_processes 1;\npid %s/nginx.pid;\nerror_log %s/error.log warn;\nevents { worker_connections 512; }\nhttp {\naccess_log off;\n%s%s}\n",
		dir, dir, paths, block)
}
