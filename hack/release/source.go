package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const appPackage = "github.com/freshbind/freshbind/cmd/freshbind/app"

// source is what is released.
type source struct {
	// commit is empty for sources that are in no git repository.
	root, version, commit string
	// tag is the image's.
	tag string
	// at is when the commit was made: the time of everything in the results.
	at time.Time
}

// chartFile is where the sources' root is known by.
const chartFile = "charts/freshbind/Chart.yaml"

// findRoot returns the folder of the sources that dir is in.
func findRoot(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("finding the sources: %w", err)
	}
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, chartFile)); err == nil {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("finding the sources: neither %s nor a folder above it has %s", dir, chartFile)
		}
	}
}

// describe says what the sources in root are.
func describe(ctx context.Context, root, version string) (source, error) {
	src := source{root: root, version: version}
	var err error
	if isRepository(ctx, root) {
		src.commit, src.at, err = head(ctx, root)
	} else {
		src.at, err = unpacked(root)
	}
	if err != nil {
		return source{}, err
	}
	if src.version == "" {
		// A chart has to have a semantic version.
		src.version = "v0.0.0-source"
		if src.commit != "" {
			src.version = "v0.0.0-" + src.commit[:12]
		}
	}
	if !strings.HasPrefix(src.version, "v") {
		return source{}, fmt.Errorf("-version %q: write it as v1.2.3", version)
	}
	src.tag = strings.TrimPrefix(src.version, "v")
	return src, nil
}

// isRepository: root is a repository itself, and not just in one.
func isRepository(ctx context.Context, root string) bool {
	cmd := exec.CommandContext(ctx, "git", "rev-parse", "--show-prefix")
	cmd.Dir = root
	prefix, err := cmd.Output()
	return err == nil && strings.TrimSpace(string(prefix)) == ""
}

// head is the commit that is checked out, and when it was made.
func head(ctx context.Context, root string) (string, time.Time, error) {
	line, err := output(ctx, root, "git", "log", "-1", "--format=%H %ct")
	if err != nil {
		return "", time.Time{}, err
	}
	commit, seconds, _ := strings.Cut(line, " ")
	at, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return "", time.Time{}, fmt.Errorf("reading the commit's time: %w", err)
	}
	return commit, time.Unix(at, 0).UTC(), nil
}

// asCommitted refuses sources that are not what the commit has: the provenance would
// vouch for something else. The folder of results may be among them.
func (m *maker) asCommitted(ctx context.Context) error {
	paths := []string{"."}
	if dist, err := filepath.Rel(m.root, m.dist); err == nil && filepath.IsLocal(dist) {
		paths = append(paths, ":(exclude,literal)"+filepath.ToSlash(dist))
	}
	changed, err := output(ctx, m.root, "git", append([]string{"status", "--porcelain", "--"}, paths...)...)
	if err != nil {
		return err
	}
	if changed != "" {
		return fmt.Errorf("a release is of a commit, and these files are not as in %s: commit or remove them\n%s", m.commit, changed)
	}
	return nil
}

// unpacked is the time that an archive gave its files.
func unpacked(root string) (time.Time, error) {
	info, err := os.Stat(filepath.Join(root, chartFile))
	if err != nil {
		return time.Time{}, fmt.Errorf("reading the sources' time: %w", err)
	}
	return info.ModTime().UTC().Truncate(time.Second), nil
}

// chartTag is the tag that the chart in the sources asks for.
func chartTag(root string) (string, error) {
	content, err := os.ReadFile(filepath.Join(root, chartFile))
	if err != nil {
		return "", fmt.Errorf("reading the chart: %w", err)
	}
	for line := range strings.Lines(string(content)) {
		if version, ok := strings.CutPrefix(line, "appVersion:"); ok {
			return strings.Trim(strings.TrimSpace(version), `"`), nil
		}
	}
	return "", fmt.Errorf("%s has no appVersion", chartFile)
}

func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("running %s %s: %w", name, args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}

// program builds freshbind for a platform, once.
func (m *maker) program(ctx context.Context, goos, arch string) (string, error) {
	key := goos + "-" + arch
	if path, ok := m.programs[key]; ok {
		return path, nil
	}
	path := filepath.Join(m.work, "freshbind-"+key)
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-o", path,
		"-ldflags", fmt.Sprintf("-s -w -X %s.version=%s -X %s.commit=%s", appPackage, m.version, appPackage, m.commit), "./cmd/freshbind")
	cmd.Dir = m.root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+arch)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building freshbind for %s: %w\n%s", key, err, out)
	}
	m.programs[key] = path
	return path, nil
}

func digest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("reading a result: %w", err)
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("reading %s: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
