package auditlog

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"
)

func TestAllIsReadAheadAndThenTheError(t *testing.T) {
	away := errors.New("the disk is away")
	all := bytes.Repeat([]byte("audit event\n"), aheadBytes/4)
	for name, tc := range map[string]struct {
		in   io.Reader
		want error
	}{
		"to its end":        {bytes.NewReader(all), nil},
		"a bit at a time":   {iotest.HalfReader(bytes.NewReader(all)), nil},
		"the end with data": {iotest.DataErrReader(bytes.NewReader(all)), nil},
		"with an error":     {io.MultiReader(bytes.NewReader(all), iotest.ErrReader(away)), away},
	} {
		t.Run(name, func(t *testing.T) {
			a := readAhead(tc.in)
			defer a.stop()
			got, err := io.ReadAll(a)
			if !bytes.Equal(got, all) || !errors.Is(err, tc.want) {
				t.Errorf("read %d bytes of %d, error %v, want %v", len(got), len(all), err, tc.want)
			}
		})
	}
}

// endless never ends, and says when it is asked for more than is kept.
type endless struct{ asked chan struct{} }

func (e endless) Read(p []byte) (int, error) {
	e.asked <- struct{}{}
	return len(p), nil
}

func TestWhoStopsIsReadAheadNoMore(t *testing.T) {
	in := endless{make(chan struct{})}
	a := readAhead(in)
	for range aheadBlocks {
		<-in.asked
	}
	select {
	case <-in.asked:
		t.Error("more is read ahead than there is room for")
	default:
	}
	a.stop()
	// The goroutine ends, and closes what it writes to, whatever it waits for.
	for range a.full {
	}
}
