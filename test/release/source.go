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
	root, version, commit string
	// at is when the commit was made: the time of everything in the results.
	at time.Time
}

func describe(ctx context.Context, root, version string) (source, error) {
	commit, err := output(ctx, root, "git", "rev-parse", "HEAD")
	if err != nil {
		return source{}, err
	}
	seconds, err := output(ctx, root, "git", "log", "-1", "--format=%ct")
	if err != nil {
		return source{}, err
	}
	at, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return source{}, fmt.Errorf("reading the commit's time: %w", err)
	}
	if version == "" {
		// A chart has to have a semantic version.
		version = "v0.0.0-" + commit[:12]
	}
	if !strings.HasPrefix(version, "v") {
		return source{}, fmt.Errorf("-version %q: write it as v1.2.3", version)
	}
	return source{root: root, version: version, commit: commit, at: time.Unix(at, 0).UTC()}, nil
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
