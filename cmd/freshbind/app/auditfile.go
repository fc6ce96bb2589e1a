package app

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/freshbind/freshbind/internal/checker"
)

// auditFile is a recording on disk: one JSON object per line.
type auditFile struct {
	file *os.File
	buf  *bufio.Writer
}

// newAuditFile never overwrites a recording. Only the user can read it: env values may be secrets.
func newAuditFile(path string) (*auditFile, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, auditUsage("--record %s: the file exists; name a new one", path)
	}
	if err != nil {
		return nil, fmt.Errorf("--record: %w", err)
	}
	return &auditFile{file: file, buf: bufio.NewWriter(file)}, nil
}

// Write appends an event.
func (f *auditFile) Write(e checker.Event) error {
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encode event: %w", err)
	}
	_, err = f.buf.Write(append(line, '\n'))
	return err
}

// Close writes what is left.
func (f *auditFile) Close() error {
	if err := errors.Join(f.buf.Flush(), f.file.Close()); err != nil {
		return fmt.Errorf("close recording: %w", err)
	}
	return nil
}

// readAuditFile feeds a recording to a history. cut is the number of a last line that was not written to its end, 0 if
// the recording is whole.
func readAuditFile(r io.Reader, h *checker.History) (cut int, err error) {
	lines := bufio.NewReader(r)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		whole := err == nil
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, fmt.Errorf("line %d: %w", n, err)
		}
		if len(bytes.TrimSpace(line)) > 0 {
			var e checker.Event
			if err := json.Unmarshal(line, &e); err != nil {
				if !whole {
					return n, nil
				}
				return 0, fmt.Errorf("line %d: not an event of a recording: %w", n, err)
			}
			if err := h.Add(e); err != nil {
				return 0, fmt.Errorf("line %d: %w", n, err)
			}
		}
		if !whole {
			return 0, nil
		}
	}
}
