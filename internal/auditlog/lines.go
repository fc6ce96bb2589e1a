package auditlog

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
)

const (
	// maxValue bounds one line, or one document where lines are not what separates events. An object has at most 1.5 MB in
	// etcd, and an event holds two of them, which a wrapping may escape.
	maxValue = 16 << 20
	// buffer is what is read at once.
	buffer = 1 << 20
)

// values reads one JSON value after the other: lines, or documents over several lines, or the elements of one array.
type values struct {
	in   *bufio.Reader
	stop func() // lets go of what is read
	buf  []byte
	line int
	// documents: values are not lines.
	documents, array, begun bool
}

func newValues(in io.Reader) (*values, error) {
	b := bufio.NewReader(in)
	if head, err := b.Peek(2); err == nil && head[0] == 0x1f && head[1] == 0x8b {
		unzipped, err := gzip.NewReader(b)
		if err != nil {
			return nil, fmt.Errorf("decompress: %w", err)
		}
		b = bufio.NewReader(unzipped)
	}
	a := readAhead(b)
	return &values{in: bufio.NewReaderSize(a, buffer), stop: a.stop}, nil
}

// next returns the next value, valid until the one after it, and the number of the line on which it begins. cut says that
// the input ends within it. The error is io.EOF after the last one.
func (v *values) next() (value []byte, line int, cut bool, err error) {
	if v.documents {
		return v.nextDocument()
	}
	for {
		raw, whole, err := v.readLine()
		if err != nil {
			return nil, v.line, false, err
		}
		value := bytes.TrimSpace(raw)
		// An export of CloudWatch to S3 has the time before each event.
		if len(value) > 0 && value[0] >= '0' && value[0] <= '9' {
			if at := bytes.IndexByte(value, ' '); at > 0 {
				value = bytes.TrimSpace(value[at:])
			}
		}
		switch {
		case len(value) == 0 && whole:
			continue
		case len(value) == 0:
			return nil, v.line, false, io.EOF
		case !v.begun && (value[0] == '[' || unclosed(value) && whole):
			v.array = value[0] == '['
			v.rewind(raw, whole)
			return v.nextDocument()
		}
		v.begun = true
		return value, v.line, !whole, nil
	}
}

func unclosed(value []byte) bool {
	_, err := valueEnd(value, 0)
	return errors.Is(err, errCut)
}

// rewind has a line read again, as the beginning of documents.
func (v *values) rewind(line []byte, whole bool) {
	again := bytes.Clone(line)
	if whole {
		again = append(again, '\n')
	}
	v.in = bufio.NewReaderSize(io.MultiReader(bytes.NewReader(again), v.in), buffer)
	v.documents = true
	v.line--
}

func (v *values) tooLong(from int) error {
	return fmt.Errorf("line %d: it is longer than %d MiB: write one event a line, as kube-apiserver does", from, maxValue>>20)
}

// readLine returns a line without its end. whole says that it had one.
func (v *values) readLine() (line []byte, whole bool, err error) {
	v.buf = v.buf[:0]
	v.line++
	for {
		part, err := v.in.ReadSlice('\n')
		if len(v.buf) == 0 && err == nil {
			return part[:len(part)-1], true, nil
		}
		v.buf = append(v.buf, part...)
		switch {
		case len(v.buf) > maxValue:
			return nil, false, v.tooLong(v.line)
		case err == nil:
			return v.buf[:len(v.buf)-1], true, nil
		case errors.Is(err, io.EOF) && len(v.buf) == 0:
			return nil, false, io.EOF
		case errors.Is(err, io.EOF):
			return v.buf, false, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, false, fmt.Errorf("line %d: %w", v.line, err)
		}
	}
}

// nextDocument reads a value byte by byte, which is slower, and enough for what people download by hand.
func (v *values) nextDocument() (value []byte, line int, cut bool, err error) {
	v.line = max(v.line, 1)
	v.buf = v.buf[:0]
	d := documentState{}
	for {
		c, err := v.in.ReadByte()
		if errors.Is(err, io.EOF) {
			if len(v.buf) == 0 {
				return nil, v.line, false, io.EOF
			}
			return v.buf, line, true, nil
		}
		if err != nil {
			return nil, v.line, false, fmt.Errorf("line %d: %w", v.line, err)
		}
		if c == '\n' {
			v.line++
		}
		if len(v.buf) == 0 {
			between := c <= ' ' || v.array && (c == '[' || c == ']' || c == ',')
			if between {
				continue
			}
			if c != '{' {
				return nil, v.line, false, fmt.Errorf("line %d: there is %q where an event should begin", v.line, c)
			}
			line = v.line
		}
		if v.buf = append(v.buf, c); len(v.buf) > maxValue {
			return nil, line, false, v.tooLong(line)
		}
		if d.ends(c) {
			return v.buf, line, false, nil
		}
	}
}

// documentState finds the end of an object.
type documentState struct {
	depth            int
	inString, escape bool
}

func (d *documentState) ends(c byte) bool {
	switch {
	case d.escape:
		d.escape = false
	case d.inString && c == '\\':
		d.escape = true
	case c == '"':
		d.inString = !d.inString
	case d.inString:
	case c == '{', c == '[':
		d.depth++
	case c == '}', c == ']':
		d.depth--
		return d.depth == 0
	}
	return false
}
