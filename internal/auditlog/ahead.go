package auditlog

import "io"

// aheadBytes is how much is read at a time, and aheadBlocks how often that before it is asked for.
const (
	aheadBytes  = 1 << 20
	aheadBlocks = 4
)

// ahead reads, and uncompresses, while what was read before is looked at.
type ahead struct {
	full, free chan []byte
	stopped    chan struct{}
	err        error // set when full is closed
	block      []byte
	rest       []byte
}

// readAhead reads from in until its end, or until stop.
func readAhead(in io.Reader) *ahead {
	a := &ahead{full: make(chan []byte, aheadBlocks), free: make(chan []byte, aheadBlocks), stopped: make(chan struct{})}
	for range aheadBlocks {
		a.free <- make([]byte, aheadBytes)
	}
	go a.fill(in)
	return a
}

func (a *ahead) fill(in io.Reader) {
	defer close(a.full)
	for {
		var block []byte
		select {
		case block = <-a.free:
		case <-a.stopped:
			return
		}
		n, err := in.Read(block[:aheadBytes])
		select {
		case a.full <- block[:n]:
		case <-a.stopped:
			return
		}
		if err != nil {
			a.err = err
			return
		}
	}
}

// Read returns what was read; the error of in comes after all of it.
func (a *ahead) Read(p []byte) (int, error) {
	for len(a.rest) == 0 {
		if a.block != nil {
			a.free <- a.block
			a.block = nil
		}
		block, ok := <-a.full
		if !ok {
			return 0, a.err
		}
		a.block, a.rest = block, block
	}
	n := copy(p, a.rest)
	a.rest = a.rest[n:]
	return n, nil
}

// stop ends the reading. Nothing can be read afterwards.
func (a *ahead) stop() { close(a.stopped) }
