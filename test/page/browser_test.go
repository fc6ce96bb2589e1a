package page

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/freshbind/freshbind/test/controlplane"
)

// envChromium names the browser, where it is none of the usual programs.
const envChromium = "FRESHBIND_CHROMIUM"

// browser looks at pages.
type browser struct{ program, chromium string }

// startBrowser builds the program that asks a browser, and skips the test where there is
// no browser.
func startBrowser(t *testing.T) browser {
	t.Helper()
	b := browser{chromium: os.Getenv(envChromium)}
	for _, name := range []string{"chromium", "chromium-browser", "chromium-headless-shell", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil && b.chromium == "" {
			b.chromium = path
		}
	}
	if b.chromium == "" {
		t.Skip("NOT CHECKED: whether a browser shows the page: there is no Chromium here (apt-get install chromium, or name one by " + envChromium + ")")
	}
	root, err := controlplane.RepositoryDir()
	if err != nil {
		t.Fatal(err)
	}
	b.program, err = controlplane.BuildTool(t.Context(), os.Stderr, filepath.Join(root, "test", "page", "browser"), "github.com/freshbind/freshbind/test/page/browser")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// view is what the browser saw; element is a part of it. test/page/browser says what they mean.
type view struct {
	Browser           string
	Width             int
	Requests, Console []string
	Elements          map[string][]element
}

type element struct {
	Class, Text         string
	X, Y, Width, Height float64
	Fill, Stroke, Color string
	Pixel               string
}

func (b browser) look(t *testing.T, scheme, page string, selectors ...string) view {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report.html")
	// What Chromium leaves behind goes, unless a process of it still writes there.
	temp, err := os.MkdirTemp("", "freshbind-browser-")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(temp) }()
	if err := os.WriteFile(path, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), b.program, append([]string{"-chromium", b.chromium, "-page", path, "-scheme", scheme}, selectors...)...)
	cmd.Env = append(os.Environ(), "TMPDIR="+temp)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("look at the page: %v\n%s", err, stderr.String())
	}
	var seen view
	if err := json.Unmarshal(out, &seen); err != nil {
		t.Fatalf("read what was seen: %v\n%s", err, out)
	}
	return seen
}
