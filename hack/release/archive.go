package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"path"
	"strings"
	"time"
)

// entry is one file of an archive, a folder when its name ends with a slash, or
// a link when it has a target.
type entry struct {
	name    string
	content []byte
	mode    int64
	link    string
}

// tarball is the same bytes for the same entries.
func tarball(at time.Time, entries ...entry) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range entries {
		h := &tar.Header{
			Typeflag: tar.TypeReg, Name: e.name, Mode: e.mode, Size: int64(len(e.content)), ModTime: at, Format: tar.FormatUSTAR,
		}
		switch {
		case e.link != "":
			h.Typeflag, h.Linkname = tar.TypeSymlink, e.link
		case strings.HasSuffix(e.name, "/"):
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("archiving %s: %w", e.name, err)
		}
		if _, err := w.Write(e.content); err != nil {
			return nil, fmt.Errorf("archiving %s: %w", e.name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("archiving: %w", err)
	}
	return out.Bytes(), nil
}

func zipped(content []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(content); err != nil {
		return nil, fmt.Errorf("compressing: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("compressing: %w", err)
	}
	return out.Bytes(), nil
}

// folders are the entries of the folders above a file.
func folders(file string) []entry {
	dir := path.Dir(file)
	if dir == "." {
		return nil
	}
	return append(folders(dir), entry{name: dir + "/", mode: 0o755})
}
